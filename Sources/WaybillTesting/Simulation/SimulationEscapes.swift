import CWaybillSimulation
import WireCore

/// Knows the tasks of every world, to tell when a task of one is resumed by a thread that simulates nothing.
enum SimulationEscapes {
    private struct State: Sendable {
        /// The worlds by the numbers of their tasks.
        var worlds: [UInt64: ObjectIdentifier] = [:]
        var jobs: [ObjectIdentifier: [SimulatedJob]] = [:]
        /// The worlds of which a task runs on another thread.
        var escaped: Set<ObjectIdentifier> = []
    }

    private static let state = Locked(State())

    /// Begins to watch over a world.
    static func begin(_ scheduler: SimulationScheduler) {
        state.withLock { $0.jobs[ObjectIdentifier(scheduler)] = [] }
        waybill_simulation_count_worlds(1)
    }

    /// Notes a task of a world.
    static func note(_ task: UInt64, of scheduler: SimulationScheduler) {
        state.withLock { $0.worlds[task] = ObjectIdentifier(scheduler) }
    }

    /// Takes a job of a world's, which is not the caller's to run.
    /// - Returns: False when its task belongs to no world.
    static func take(_ job: SimulatedJob) -> Bool {
        guard job.isTask, waybill_simulation_count_worlds(0) > 0 else { return false }
        return state.withLock { state in
            guard let world = state.worlds[job.task], state.jobs[world] != nil else {
                return false
            }
            state.jobs[world]?.append(job)
            return true
        }
    }

    /// Takes the jobs of a world that were enqueued elsewhere.
    static func takeJobs(of scheduler: SimulationScheduler) -> [SimulatedJob] {
        let world = ObjectIdentifier(scheduler)
        return state.withLock { state in
            guard let jobs = state.jobs[world], !jobs.isEmpty else { return [] }
            state.jobs[world] = []
            return jobs
        }
    }

    /// Notes that the calling thread, which does not simulate a world, runs one of its tasks.
    static func noteEscape(of scheduler: SimulationScheduler) {
        let world = ObjectIdentifier(scheduler)
        state.withLock { state in
            if state.jobs[world] != nil { state.escaped.insert(world) }
        }
    }

    /// Whether another thread has run a task of a world since the last call.
    static func takeEscape(of scheduler: SimulationScheduler) -> Bool {
        state.withLock { $0.escaped.remove(ObjectIdentifier(scheduler)) != nil }
    }

    /// Ends the watch over a world.
    static func end(_ scheduler: SimulationScheduler) {
        let world = ObjectIdentifier(scheduler)
        waybill_simulation_count_worlds(-1)
        state.withLock { state in
            state.jobs[world] = nil
            state.escaped.remove(world)
            state.worlds = state.worlds.filter { $0.value != world }
        }
    }
}
