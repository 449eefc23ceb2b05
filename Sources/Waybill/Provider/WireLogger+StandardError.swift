#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Writes each record to standard error as one line.
///
/// Control characters are written as their numbers, so a terminal does not interpret them.
public struct StandardErrorWireLogger: WireLogger {
    private let prefix: String
    private let descriptor: Int32

    /// Makes a logger with a prefix before each line.
    public init(prefix: String = "waybill") {
        self.init(prefix: prefix, descriptor: STDERR_FILENO)
    }

    /// Makes a logger for a file descriptor, for tests.
    package init(prefix: String, descriptor: Int32) {
        self.prefix = prefix
        self.descriptor = descriptor
    }

    /// Writes the record.
    public func log(_ record: WireRecord) {
        var line = Array("\(prefix) \(record.line)\n".utf8)
        let guarding = BrokenPipeGuard()
        defer { guarding.end() }
        // One call per line keeps the lines of several threads apart. A line that cannot be written is lost.
        while !line.isEmpty {
            let count = write(descriptor, line, line.count)
            guard count > 0 || errno == EINTR else { return }
            line.removeFirst(max(count, 0))
        }
    }
}

/// Blocks SIGPIPE on a thread while it writes: a pipe without a reader would otherwise end the process.
private struct BrokenPipeGuard {
    private var before = sigset_t()
    private let wasPending: Bool

    init() {
        var pipe = Self.pipeSignal
        wasPending = Self.isPending
        pthread_sigmask(SIG_BLOCK, &pipe, &before)
    }

    /// Consumes the SIGPIPE that this thread's write caused, if any, and restores the signal mask.
    func end() {
        var (pipe, before, number) = (Self.pipeSignal, before, Int32(0))
        // A signal that was pending before is left alone. Where SIGPIPE is ignored, none is pending.
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
