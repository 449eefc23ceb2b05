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
        // A pipe without a reader would otherwise end the process.
        let guarding = BlockedSignal(SIGPIPE)
        defer { guarding.end() }
        // One call per line keeps the lines of several threads apart. A line that cannot be written is lost.
        while !line.isEmpty {
            let count = write(descriptor, line, line.count)
            guard count > 0 || errno == EINTR else { return }
            line.removeFirst(max(count, 0))
        }
    }
}
