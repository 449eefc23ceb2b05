#if os(Linux)
    import Synchronization
#endif

/// Tells a simulation when a lock is taken and released.
///
/// A simulation runs all tasks on one thread. After a lock is released, where a thread could be preempted, the
/// simulation may run another task.
///
/// The observer is part of debug builds on Linux, and of builds with the flag `WAYBILL_SIMULATION`. There each critical
/// section costs an additional load and branch. Other builds, and those for the thread sanitizer, do not contain it.
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

    /// Installs closures that are called around each critical section of every lock; once per process.
    ///
    /// A second call has no effect. A build without the observer never calls the closures. A critical section that has
    /// already begun calls neither closure.
    ///
    /// A thread may hold several locks and releases them in reverse order. Another task may run only when all are
    /// released.
    ///
    /// - Parameters:
    ///   - willLock: Called before the lock is taken. It must not use a ``Locked``, which would call it again.
    ///   - didUnlock: Called after the lock is released, also when the body has thrown. Tasks that it runs may use
    ///     locks and thereby call it again; its own code must not.
    ///   - hold: Called with true before a section that no task may interrupt, and with false after it.
    ///   - beginWait: Called before a task waits (``Suspension``), with what it waits for; returns the wait's number.
    ///   - endWait: Called after the wait, with its number.
    package static func install(
        willLock: @escaping @Sendable () -> Void,
        didUnlock: @escaping @Sendable () -> Void,
        hold: @escaping @Sendable (Bool) -> Void = { _ in },
        beginWait: @escaping @Sendable (() -> String) -> UInt64? = { _ in nil },
        endWait: @escaping @Sendable (UInt64) -> Void = { _ in }
    ) {
        #if os(Linux)
            _ = installed.storeIfNil(
                Closures(
                    willLock: willLock,
                    didUnlock: didUnlock,
                    hold: hold,
                    beginWait: beginWait,
                    endWait: endWait
                )
            )
        #endif
    }

    /// Notes that the task waits.
    ///
    /// - Parameter reason: What it waits for, in words.
    /// - Returns: The number of the wait; nil outside simulations.
    @inlinable
    package static func beginWait(_ reason: () -> String) -> UInt64? {
        #if os(Linux) && (DEBUG || WAYBILL_SIMULATION)
            current?.beginWait(reason) ?? nil
        #else
            nil
        #endif
    }

    /// Notes that a wait has ended.
    @inlinable
    package static func endWait(_ wait: UInt64?) {
        #if os(Linux) && (DEBUG || WAYBILL_SIMULATION)
            if let wait { current?.endWait(wait) }
        #endif
    }

    /// Runs a cancellation handler, which no other task may interrupt although it takes locks.
    ///
    /// The cancelled task waits for its cancellation handler at the end of its own wait. On a single thread that would
    /// never end.
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
        @usableFromInline
        package final class Closures: Sendable {
            @usableFromInline package let willLock: @Sendable () -> Void
            @usableFromInline package let didUnlock: @Sendable () -> Void
            @usableFromInline package let hold: @Sendable (Bool) -> Void
            @usableFromInline package let beginWait: @Sendable (() -> String) -> UInt64?
            @usableFromInline package let endWait: @Sendable (UInt64) -> Void

            init(
                willLock: @escaping @Sendable () -> Void,
                didUnlock: @escaping @Sendable () -> Void,
                hold: @escaping @Sendable (Bool) -> Void,
                beginWait: @escaping @Sendable (() -> String) -> UInt64?,
                endWait: @escaping @Sendable (UInt64) -> Void
            ) {
                self.willLock = willLock
                self.didUnlock = didUnlock
                self.hold = hold
                self.beginWait = beginWait
                self.endWait = endWait
            }
        }

        // Set once and never released. The load is acquiring: on x86 that is the same instruction as a relaxed load,
        // and it guarantees that the closures are completely visible.
        private static let installed = AtomicLazyReference<Closures>()

        /// The closures; nil in a process without a simulation.
        @usableFromInline package static var current: Closures? { installed.load() }
    #endif
}
