import WireCore

/// Receives records of the frames on the wire, and of the requests and messages of a provider.
///
/// Records never hold credentials or the values of headers. They hold bodies only if ``bodies`` asks for them.
public protocol WireLogger: Sendable {
    /// Whether records contain bodies; by default they do not.
    ///
    /// ``WireLogger/showing(bodies:)`` changes it for an existing logger.
    var bodies: WireLogBodies { get }

    /// Logs a record.
    ///
    /// It is called from any thread, in order for each direction of a connection. It should return soon.
    func log(_ record: WireRecord)
}

/// A record for a logger.
public struct WireRecord: Sendable {
    /// The kind of record.
    public enum Kind: Sendable {
        /// A request, after the interceptors.
        case request
        /// A request was confirmed.
        case receipt
        /// A message was received, before the interceptors.
        case message
        /// A request failed.
        case failure
        /// A frame or packet on the wire.
        case frame
    }

    /// The direction of a record.
    public enum Direction: Sendable {
        /// To the peer.
        case outbound
        /// From the peer.
        case inbound
    }

    /// The kind of record.
    public var kind: Kind
    /// The direction.
    public var direction: Direction
    /// The name of the packet, frame, method, status or command, such as `PUBLISH`, `MESSAGE`, `GET`, `200` or `send`.
    ///
    /// It is empty in records of transports that state none.
    public var name = ""
    /// The topic, without the query of a path; nil where there is none, and the first of several.
    ///
    /// A frame that names its topic by an alias has the topic here.
    public var topic: String?
    /// The label of the client, as its transport's configuration states it; nil without one.
    public var label: String?
    /// The content, in one line without secrets; text from a peer is escaped.
    public var text: String
    /// The length in bytes; zero where there is none.
    public var byteCount: Int
    /// The body, if the logger wants bodies and there is one; nil otherwise.
    ///
    /// ``line`` shows it; the description does not.
    public var body: Payload?

    /// Makes a record; used by transports.
    public init(
        kind: Kind,
        direction: Direction,
        text: String,
        byteCount: Int = 0,
        body: Payload? = nil
    ) {
        self.kind = kind
        self.direction = direction
        self.text = text.escaped
        self.byteCount = byteCount
        self.body = body
    }
}

extension WireRecord: CustomStringConvertible {
    /// The label, if there is one, an arrow for the direction, and the text.
    public var description: String {
        let begin = (label.map { "[\($0.escaped)] " } ?? "") + (direction == .outbound ? "→" : "←")
        return kind == .frame ? "\(begin) \(text)  [\(byteCount) bytes]" : "\(begin) \(text)"
    }
}

/// Passes each record to a closure.
public struct ClosureWireLogger: WireLogger {
    private let body: @Sendable (WireRecord) -> Void

    /// Makes a logger with a closure.
    public init(_ body: @escaping @Sendable (WireRecord) -> Void) {
        self.body = body
    }

    /// Calls the closure.
    public func log(_ record: WireRecord) {
        body(record)
    }
}
