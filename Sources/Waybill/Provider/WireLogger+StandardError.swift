#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Writes each record to standard error, as a line.
///
/// What a terminal would obey, or take for another line, is written as its number.
public struct StandardErrorWireLogger: WireLogger {
    private let prefix: String
    private let descriptor: Int32

    /// Logs with a word before each line.
    public init(prefix: String = "waybill") {
        self.init(prefix: prefix, descriptor: STDERR_FILENO)
    }

    /// Logs to what a descriptor stands for, as a test does.
    package init(prefix: String, descriptor: Int32) {
        self.prefix = prefix
        self.descriptor = descriptor
    }

    /// Writes the record.
    public func log(_ record: WireRecord) {
        var line = Array("\(prefix) \(record.line)\n".utf8)
        let guarding = BrokenPipeGuard()
        defer { guarding.end() }
        // One call for a line keeps lines of several threads apart; what nobody takes is lost.
        while !line.isEmpty {
            let count = write(descriptor, line, line.count)
            guard count > 0 || errno == EINTR else { return }
            line.removeFirst(max(count, 0))
        }
    }
}

/// Blocks SIGPIPE on a thread while it writes: a pipe whose reader is gone would end the process.
private struct BrokenPipeGuard {
    private var before = sigset_t()
    private let wasPending: Bool

    init() {
        var pipe = Self.pipeSignal
        wasPending = Self.isPending
        pthread_sigmask(SIG_BLOCK, &pipe, &before)
    }

    /// Takes the signal that this thread has brought about, if any, and lets others come as before.
    func end() {
        var (pipe, before, number) = (Self.pipeSignal, before, Int32(0))
        // One that was there before is not ours to take. Where SIGPIPE is ignored, none is pending.
        if !wasPending, Self.isPending { sigwait(&pipe, &number) }
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    private static var pipeSignal: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        sigaddset(&set, SIGPIPE)
        return set
    }

    private static var isPending: Bool {
        var set = sigset_t()
        sigpending(&set)
        return sigismember(&set, SIGPIPE) == 1
    }
}
