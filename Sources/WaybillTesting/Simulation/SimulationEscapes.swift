import CWaybillSimulation
import WireCore

/// Knows the tasks of every world, to tell when one of them leaves it: when a thread resumes it that does not simulate.
enum SimulationEscapes {
    /// What has left one world.
    final class Watch: Sendable {
        /// Whether anything has; the world looks at it at each step, and takes the lock only then.
        private let isTouched = RaisedFlag()
        private let state = Locked<(jobs: [SimulatedJob], hasEscaped: Bool)>(([], false))

        /// Takes a job that was enqueued elsewhere.
        fileprivate func take(_ job: SimulatedJob) {
            state.withLock { $0.jobs.append(job) }
            isTouched.raise()
        }

        /// Notes that a thread that does not simulate the world runs one of its tasks.
        func noteEscape() {
            state.withLock { $0.hasEscaped = true }
            isTouched.raise()
        }

        /// What has left since the last call: jobs, and whether a task has run outside.
        func takeAll() -> (jobs: [SimulatedJob], hasEscaped: Bool)? {
            guard isTouched.isRaised else { return nil }
            return state.withLock { state in
                defer { state = ([], false) }
                return state
            }
        }
    }

    /// The worlds by the numbers of their tasks.
    private static let watches = Locked<[UInt64: Watch]>([:])

    /// Begins to watch over a world.
    static func begin() -> Watch {
        waybill_simulation_count_worlds(1)
        return Watch()
    }

    /// Notes a task of a world.
    static func note(_ task: UInt64, for watch: Watch) {
        watches.withLock { $0[task] = watch }
        waybill_simulation_note_task(task)
    }

    /// Takes a job that belongs to a world and not to the calling thread.
    /// - Returns: False when it belongs to none.
    static func take(_ job: SimulatedJob) -> Bool {
        guard waybill_simulation_count_worlds(0) > 0, job.isTask,
            waybill_simulation_may_know_task(job.task) != 0,
            let watch = watches.withLock({ $0[job.task] })
        else { return false }
        watch.take(job)
        return true
    }

    /// Ends the watch over a world, whose tasks these are.
    static func end(_ tasks: some Sequence<UInt64>) {
        waybill_simulation_count_worlds(-1)
        watches.withLock { watches in
            for task in tasks { watches[task] = nil }
        }
    }
}
