#if canImport(Darwin)
    import os
#elseif WAYBILL_THREAD_SANITIZER
    import Glibc
#else
    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif
    public import Synchronization
#endif

/// A value protected by one lock.
///
/// The lock is held for the length of a closure that can neither suspend nor let the value escape, so it never spans an
/// `await`. User code is never called inside.
@usableFromInline
package struct Locked<State>: ~Copyable, Sendable {
    #if canImport(Darwin)
        // `uncheckedState` only skips the check that the initial value may cross isolation domains; the `sending`
        // parameter of `init` is that check.
        private let lock: OSAllocatedUnfairLock<State>

        @usableFromInline
        package init(_ state: sending State) {
            lock = OSAllocatedUnfairLock(uncheckedState: state)
        }

        @usableFromInline
        package func withLock<Output, Failure: Error>(
            _ body: (inout State) throws(Failure) -> Output
        ) throws(Failure) -> Output {
            let result = lock.withLockUnchecked { state -> Result<Output, Failure> in
                do throws(Failure) { return .success(try body(&state)) } catch {
                    return .failure(error)
                }
            }
            return try result.get()
        }
    #elseif WAYBILL_THREAD_SANITIZER
        // The thread sanitizer supports pthread's locks and not those of the standard library: with the latter it would
        // report every use as a race. Never part of an ordinary build.
        private let box: PthreadBox<State>

        @usableFromInline
        package init(_ state: sending State) {
            box = PthreadBox(state)
        }

        @usableFromInline
        package func withLock<Output, Failure: Error>(
            _ body: (inout State) throws(Failure) -> Output
        ) throws(Failure) -> Output {
            pthread_mutex_lock(box.mutex)
            defer { pthread_mutex_unlock(box.mutex) }
            return try body(&box.state)
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
            #if DEBUG || WAYBILL_SIMULATION
                // Loaded once, so that both closures are called or none.
                let observer = LockObserver.current
                observer?.willLock()
                defer { observer?.didUnlock() }
            #endif
            var attempt = 0
            // In one place only, so that it is inlined into the caller.
            while true {
                if let result = try mutex.withLockIfAvailable(body) { return result }
                attempt += 1
                wait(attempt)
            }
        }

        /// Waits for the thread that holds the lock.
        ///
        /// The mutex itself would first spin for about 40 microseconds. That is in vain if the holder waits for this
        /// very processor, and a single yield is usually enough. After that the kernel waits.
        @usableFromInline
        @inline(never)
        func wait(_ attempt: Int) {
            guard attempt > 1 else {
                sched_yield()
                return
            }
            #if DEBUG || WAYBILL_SIMULATION
                // Simulations start and end threads all the time. Meanwhile Linux 6.18 has left threads asleep that
                // wait for a released lock (FUTEX_LOCK_PI). This wait therefore does not depend on being woken.
                var pause = timespec(tv_sec: 0, tv_nsec: 50_000)
                pselect(0, nil, nil, nil, &pause, nil)
            #else
                mutex.withLock { _ in }
            #endif
        }
    #endif
}

#if WAYBILL_THREAD_SANITIZER
    /// `@unchecked Sendable`, because: the state is only accessed with the mutex locked.
    private final class PthreadBox<State>: @unchecked Sendable {
        // Allocated in `init` and freed in `deinit`: valid as long as the object.
        let mutex: UnsafeMutablePointer<pthread_mutex_t>
        var state: State

        init(_ state: State) {
            self.state = state
            mutex = .allocate(capacity: 1)
            pthread_mutex_init(mutex, nil)
        }

        deinit {
            pthread_mutex_destroy(mutex)
            mutex.deallocate()
        }
    }
#endif
