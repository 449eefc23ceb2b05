// The executors are an SPI, and CWaybillSimulation.c knows how the standard library lays out its hashing parameters. Both may
// change with a release. To raise the bound, compare both in the new toolchain's sources, then run WaybillTestingTests and
// SimulationTests with it.
#if os(Linux) && compiler(>=6.3) && compiler(<6.4)
    @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency
    import CWaybillSimulation
    import WaybillLink

    /// Keeps the jobs of threads that simulate in their world, and leaves all others to the platform.
    private protocol SplitExecutor: SchedulingExecutor {
        var platform: any Executor { get }
        /// The same; nil if it cannot wait.
        var schedulingPlatform: (any SchedulingExecutor)? { get }
        var runsOnMain: Bool { get }
    }

    extension SplitExecutor {
        private func simulated(_ job: consuming ExecutorJob) -> SimulatedJob {
            let isTask = job.kind == .task
            return SimulatedJob(UnownedJob(job), isTask: isTask, runsOnMain: runsOnMain)
        }

        func enqueue(_ job: consuming ExecutorJob) {
            let simulated = simulated(job)
            if let scheduler = SimulationScheduler.current { return scheduler.enqueue(simulated) }
            // A task of a world that is resumed by something real has got out of it, and its world is told.
            if SimulationEscapes.take(simulated) { return }
            platform.enqueue(ExecutorJob(simulated.job))
        }

        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob,
            after delay: C.Duration,
            tolerance: C.Duration?,
            clock: C
        ) {
            if let scheduler = SimulationScheduler.current {
                scheduler.enqueue(simulated(job), after: delay)
            } else if let schedulingPlatform {
                schedulingPlatform.enqueue(job, after: delay, tolerance: tolerance, clock: clock)
            } else {
                // Those of the toolchains above can all wait. A sleep that is too short is better than one without end.
                platform.enqueue(job)
            }
        }

        func enqueue<C: Clock>(
            _ job: consuming ExecutorJob,
            at instant: C.Instant,
            tolerance: C.Duration?,
            clock: C
        ) {
            if SimulationScheduler.current != nil {
                enqueue(
                    job,
                    after: clock.now.duration(to: instant),
                    tolerance: tolerance,
                    clock: clock
                )
            } else if let schedulingPlatform {
                schedulingPlatform.enqueue(job, at: instant, tolerance: tolerance, clock: clock)
            } else {
                // As above.
                platform.enqueue(job)
            }
        }
    }

    /// In the place of the executor that runs tasks.
    private final class SplitTaskExecutor: TaskExecutor, SplitExecutor {
        let platform: any Executor = PlatformExecutorFactory.defaultExecutor
        let schedulingPlatform = PlatformExecutorFactory.defaultExecutor as? any SchedulingExecutor
        let runsOnMain = false
    }

    /// In the place of the main actor's.
    private final class SplitMainExecutor: MainExecutor, SplitExecutor {
        private let main = PlatformExecutorFactory.mainExecutor
        let schedulingPlatform = PlatformExecutorFactory.mainExecutor as? any SchedulingExecutor
        let runsOnMain = true

        var platform: any Executor { main }

        func run() throws { try main.run() }

        func stop() { main.stop() }

        func checkIsolated() {
            if SimulationScheduler.current == nil { main.checkIsolated() }
        }

        func isIsolatingCurrentContext() -> Bool? {
            guard let scheduler = SimulationScheduler.current else {
                return main.isIsolatingCurrentContext()
            }
            return scheduler.isOnMain
        }
    }

    private struct SplitExecutors: ExecutorFactory {
        static let task = SplitTaskExecutor()
        static let main = SplitMainExecutor()

        static var mainExecutor: any MainExecutor { main }
        static var defaultExecutor: any TaskExecutor { task }
    }

    extension SimulationScheduler {
        /// The one that the calling thread runs.
        static var current: SimulationScheduler? {
            guard let world = waybill_simulation_world() else { return nil }
            // The job that entered it keeps it alive until the thread has left it.
            return Unmanaged.fromOpaque(world).takeUnretainedValue()
        }
    }

    extension SimulatedJob {
        /// The number of its task; 0 for the task of an actor, whose number is not set.
        var task: UInt64 {
            guard isTask else { return 0 }
            // A job is one word, the pointer to it.
            return waybill_simulation_task(unsafeBitCast(job, to: UnsafeRawPointer.self))
        }

        /// Runs it on the calling thread.
        func run() {
            if runsOnMain {
                job.runSynchronously(on: SplitExecutors.main.asUnownedSerialExecutor())
            } else {
                job.runSynchronously(on: SplitExecutors.task.asUnownedTaskExecutor())
            }
        }
    }

    /// Called once, before the first task of the process: see CWaybillSimulation.c.
    @_cdecl("waybill_simulation_install_executors")
    func installSimulationExecutors() {
        _createExecutors(factory: SplitExecutors.self)
    }

    /// A thread of its own for a world: no other jobs run on it.
    enum SimulationThread {
        static func run(_ body: @escaping @Sendable () -> Void) {
            // Without a thread left in the system on this one, whose other jobs wait.
            do { try SystemThread.detach(body) } catch { body() }
        }

        static func giveWay() { SystemThread.giveWay() }

        /// The name that the app has given to the running task.
        static var taskName: String? { Task.name }
    }
#else
    enum SimulationThread {
        static var taskName: String? { nil }

        static func run(_ body: @escaping @Sendable () -> Void) {}

        static func giveWay() {}
    }

    extension SimulationScheduler {
        /// None: nothing is simulated on this platform.
        static var current: SimulationScheduler? { nil }
    }

    extension SimulatedJob {
        var task: UInt64 { 0 }

        func run() {}
    }
#endif
