#if os(Linux)
    import Synchronization
#endif

/// Tells a simulation when a lock is taken and opened.
///
/// A simulation runs all tasks in one thread. Where a thread could be preempted, just after it has opened a lock, the
/// simulation may run another task first.
///
/// Part of debug builds on Linux, and of those with the flag `WAYBILL_SIMULATION`: there, each critical section costs a
/// load and a branch more. Any other build has nothing of it, nor has one for the thread sanitizer.
@usableFromInline
package enum LockObserver {
    /// Whether this build calls the closures.
    package static var isCompiledIn: Bool {
        #if canImport(Darwin)
            false
        #elseif WAYBILL_THREAD_SANITIZER
            false
        #else
            #if DEBUG || WAYBILL_SIMULATION
                true
            #else
                false
            #endif
        #endif
    }

    /// Calls these around each critical section of every lock of the process from now on; once per process.
    ///
    /// A second call changes nothing. A build without the hook calls none of them, even where it stores them. A critical
    /// section that has begun by then calls neither closure.
    ///
    /// A thread may have taken other locks before, and opens them in the reverse order. Only when all are open may
    /// another task run.
    ///
    /// - Parameters:
    ///   - willLock: Called before the lock is taken. It must use no ``Locked``, which would call it again.
    ///   - didUnlock: Called once the lock is open, also when the body has thrown. Tasks that it runs may use locks and
    ///     call it again; what it does itself must not.
    ///   - hold: Called with true before something that no task may interrupt, and with false after it.
    package static func install(
        willLock: @escaping @Sendable () -> Void,
        didUnlock: @escaping @Sendable () -> Void,
        hold: @escaping @Sendable (Bool) -> Void = { _ in }
    ) {
        #if os(Linux)
            _ = installed.storeIfNil(
                Closures(willLock: willLock, didUnlock: didUnlock, hold: hold)
            )
        #endif
    }

    /// Runs what no other task may interrupt, though it takes locks: a cancellation handler.
    ///
    /// While one runs, the task that is cancelled waits for it at the end of its own wait. In one thread it could not.
    @inlinable
    package static func uninterrupted(_ body: () -> Void) {
        #if os(Linux) && (DEBUG || WAYBILL_SIMULATION)
            let closures = current
            closures?.hold(true)
            defer { closures?.hold(false) }
        #endif
        body()
    }

    #if os(Linux)
        /// What was installed.
        @usableFromInline
        package final class Closures: Sendable {
            @usableFromInline package let willLock: @Sendable () -> Void
            @usableFromInline package let didUnlock: @Sendable () -> Void
            @usableFromInline package let hold: @Sendable (Bool) -> Void

            init(
                willLock: @escaping @Sendable () -> Void,
                didUnlock: @escaping @Sendable () -> Void,
                hold: @escaping @Sendable (Bool) -> Void
            ) {
                self.willLock = willLock
                self.didUnlock = didUnlock
                self.hold = hold
            }
        }

        // Set once and never released. The load is an acquiring one: on x86 it is the same instruction as a relaxed
        // load, and it needs no proof that the closures are seen complete.
        private static let installed = AtomicLazyReference<Closures>()

        /// The closures; nil in a process without a simulation.
        @usableFromInline package static var current: Closures? { installed.load() }
    #endif
}
