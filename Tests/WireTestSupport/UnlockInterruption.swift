#if os(Linux)
    import Glibc
    import Synchronization
    import WireCore

    /// Runs an action beside a thread that has just opened a lock, as if the thread were preempted there.
    ///
    /// It needs ``WireCore/LockObserver``, whose closures cannot be removed again: a test that uses it has a process of
    /// its own.
    package enum UnlockInterruption {
        private struct State: Sendable {
            /// The thread to be interrupted.
            var thread: UInt?
            /// The number of locks that it opens until then.
            var count = 0
            var action: (@Sendable () async -> Void)?
            /// Runs the action.
            var task: Task<Void, Never>?
        }

        // A `Locked` would call the closures of the observer again.
        private static let state = Mutex(State())

        /// The next call of ``arm()`` interrupts its thread when this thread has opened so many locks.
        package static func plan(_ count: Int, _ action: @escaping @Sendable () async -> Void) {
            LockObserver.install(willLock: {}, didUnlock: { noteUnlock() })
            state.withLock { $0 = State(count: count, action: action) }
        }

        /// From now on the locks count that this thread opens.
        package static func arm() {
            state.withLock { $0.thread = UInt(pthread_self()) }
        }

        /// Runs the action if the thread has opened fewer locks than planned, and waits for its end.
        package static func finish() async {
            let (action, task) = state.withLock { state in
                defer { state = State() }
                return (state.action, state.task)
            }
            await action?()
            await task?.value
        }

        private static func noteUnlock() {
            let isDone = Flag()
            let isDue = state.withLock { state in
                guard state.thread == UInt(pthread_self()) else { return false }
                state.count -= 1
                guard state.count == 0, let action = state.action.take() else { return false }
                state.task = Task.detached {
                    await action()
                    isDone.set()
                }
                return true
            }
            guard isDue else { return }
            // An action that needs a lock which this thread still holds can end only later.
            for _ in 0..<100 where !isDone.isSet { usleep(1_000) }
        }

        private final class Flag: Sendable {
            private let value = Atomic(false)

            var isSet: Bool { value.load(ordering: .acquiring) }

            func set() { value.store(true, ordering: .releasing) }
        }
    }

    /// Gives other tasks and threads time to run.
    package func letOthersRun() async {
        for _ in 0..<5 {
            for _ in 0..<20 { await Task.yield() }
            try? await Task.sleep(for: .milliseconds(1))
        }
    }
#endif
