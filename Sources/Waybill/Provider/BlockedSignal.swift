#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Blocks a signal on a thread that may cause it while it writes, and that would end the process: SIGPIPE or SIGXFSZ.
package struct BlockedSignal {
    private let number: Int32
    private var before = sigset_t()
    private let wasPending: Bool

    /// Blocks the signal until ``end()``, which the same thread calls.
    package init(_ number: Int32) {
        self.number = number
        var blocked = Self.set(of: number)
        wasPending = Self.isPending(number)
        pthread_sigmask(SIG_BLOCK, &blocked, &before)
    }

    /// Consumes the signal that this thread's write caused, if any, and restores the signal mask.
    package func end() {
        var (blocked, before, caught) = (Self.set(of: number), before, Int32(0))
        // A signal that was pending before is left alone. Where the signal is ignored, none is pending.
        if !wasPending, Self.isPending(number) { sigwait(&blocked, &caught) }
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    private static func set(of number: Int32) -> sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, number)
        return set
    }

    private static func isPending(_ number: Int32) -> Bool {
        var set = sigset_t()
        sigpending(&set)
        return sigismember(&set, number) == 1
    }
}
