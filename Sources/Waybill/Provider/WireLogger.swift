import WireCore

/// Is shown what goes over the wire, and what goes through a provider.
///
/// Records never hold credentials or the values of headers, and bodies only where ``bodies`` asks for them.
public protocol WireLogger: Sendable {
    /// Whether records come with bodies; by default they do not.
    ///
    /// ``WireLogger/showing(bodies:)`` changes it for a logger that exists already.
    var bodies: WireLogBodies { get }

    /// Takes a record. Called from any thread, in order for each direction of a connection; it should
    /// return soon.
    func log(_ record: WireRecord)
}

/// One thing that happened.
public struct WireRecord: Sendable {
    /// What kind of thing.
    public enum Kind: Sendable {
        /// A request, as it left the interceptors.
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

    /// Which way it went.
    public enum Direction: Sendable {
        /// To the peer.
        case outbound
        /// From the peer.
        case inbound
    }

    /// What kind of thing.
    public var kind: Kind
    /// Which way it went.
    public var direction: Direction
    /// What it was, in one line without secrets; what a peer said is escaped.
    public var text: String
    /// Its length in bytes, zero where that means nothing.
    public var byteCount: Int
    /// The body, where the logger asks for bodies and there is one; nil otherwise.
    ///
    /// No description shows it: ``line`` does.
    public var body: Payload?

    /// Makes a record, as a transport does.
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
    /// An arrow for the direction, and the text.
    public var description: String {
        let arrow = direction == .outbound ? "→" : "←"
        return kind == .frame ? "\(arrow) \(text)  [\(byteCount) bytes]" : "\(arrow) \(text)"
    }
}

/// Gives each record to a closure.
public struct ClosureWireLogger: WireLogger {
    private let body: @Sendable (WireRecord) -> Void

    /// Logs with a closure.
    public init(_ body: @escaping @Sendable (WireRecord) -> Void) {
        self.body = body
    }

    /// Calls the closure.
    public func log(_ record: WireRecord) {
        body(record)
    }
}
