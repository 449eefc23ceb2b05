import WireCore

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
        // One call for a line keeps lines of several threads apart; what nobody takes is lost.
        while !line.isEmpty {
            let count = write(descriptor, line, line.count)
            guard count > 0 || errno == EINTR else { return }
            line.removeFirst(max(count, 0))
        }
    }
}

extension WireRecord {
    /// The description, in one line also where the text was changed.
    var line: String { description.escaped }
}
