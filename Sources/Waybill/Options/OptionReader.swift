/// Reads the options of a request for a transport, and refuses those that the transport did not take.
///
/// ```swift
/// var options = OptionReader(request)
/// let isRetained = options.take(.retained)
/// let expiry = options.take(.expiry)
/// try options.finish(for: "MQTT 5")
/// ```
///
/// A transport reads all options before any input or output, so that a refused request has no effect. A reader that is
/// not finished refuses nothing.
public struct OptionReader: ~Copyable {
    private let request: Request
    /// The positions of the options that were taken, one bit each; more than 64 options are never all known.
    private var taken: UInt64 = 0

    /// Begins with the options of a request.
    public init(_ request: Request) {
        self.request = request
        _ = take(.kind)
        _ = take(.messageID)
    }

    /// Whether there is no option; asked first, because most requests have none.
    public var isPlain: Bool { request.command.isPlain }

    /// Takes an option.
    ///
    /// - Parameter key: The key of the option.
    /// - Returns: Its value; nil where it is absent.
    public mutating func take<Value>(_ key: OptionKey<Value>) -> Value? { value(of: key) }

    /// Takes a flag.
    ///
    /// - Parameter key: The key of the flag.
    /// - Returns: Its value; false where it is absent.
    public mutating func take(_ key: OptionKey<Bool>) -> Bool { value(of: key) ?? false }

    private mutating func value<Value>(of key: OptionKey<Value>) -> Value? {
        guard let boxes = request.command.boxes else { return nil }
        for (index, box) in boxes.enumerated() {
            guard let value = box.value(of: key) else { continue }
            taken |= 1 << UInt64(index)
            return value
        }
        return nil
    }

    /// Refuses the first option that was not taken.
    ///
    /// - Parameter transport: The protocol, as its users know it.
    /// - Throws: `unsupported` with the option's name in ``WaybillError/option``.
    public consuming func finish(for transport: String) throws(WaybillError) {
        guard let boxes = request.command.boxes else { return }
        for (index, box) in boxes.enumerated() where taken & 1 << UInt64(index) == 0 {
            throw .unsupported(
                box.name,
                "\(transport) does not support \(box.name) for \(request.command.name)",
                in: request
            )
        }
    }
}
