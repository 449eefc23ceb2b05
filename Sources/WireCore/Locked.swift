#if canImport(Darwin)
import os
#else
package import Synchronization
#endif

/// A value and the one lock around it.
///
/// The lock is held for the length of a closure that can neither suspend nor let the value out, so
/// it never spans an `await`. User code is never called inside.
package struct Locked<State>: ~Copyable, Sendable {
    #if canImport(Darwin)
    // `uncheckedState` only waives the check that the initial value may cross isolation domains;
    // `init` takes it as `sending`, which is that check.
    private let lock: OSAllocatedUnfairLock<State>

    package init(_ state: sending State) {
        lock = OSAllocatedUnfairLock(uncheckedState: state)
    }

    package func withLock<Result, Failure: Error>(
        _ body: (inout State) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return try lock.withLockUnchecked { state throws(Failure) in try body(&state) }
    }
    #else
    @usableFromInline
    package let mutex: Mutex<State>

    @inlinable
    package init(_ state: sending State) {
        mutex = Mutex(state)
    }

    /// Runs `body` with the value while the lock is held.
    @inlinable
    package func withLock<Result: ~Copyable, Failure: Error>(
        _ body: (inout sending State) throws(Failure) -> sending Result
    ) throws(Failure) -> sending Result {
        try mutex.withLock(body)
    }
    #endif
}
