import HTTPWire
package import WireCore

/// A proxy's tunnel as a layer: first the handshake, then all data unchanged.
///
/// Data that the proxy sent after its response is read first.
package struct ProxyTunnel: StreamLayer {
    package static var isTransparent: Bool { true }

    private var handshake: HTTPTunnelHandshake
    private let handshakeDeadline: WireInstant

    /// - Parameters:
    ///   - handshake: The handshake.
    ///   - deadline: The time limit of the handshake.
    init(_ handshake: HTTPTunnelHandshake, by deadline: WireInstant) {
        self.handshake = handshake
        handshakeDeadline = deadline
    }

    /// The outcome of the handshake; nil before it is decided.
    private var outcome: Result<Void, LinkError>? {
        switch handshake.outcome {
        case nil: nil
        case .open: .success(())
        case .refused(let head, let body): .failure(.proxyRefused(head, body: body))
        case .violation(let violation): .failure(.proxyViolation(violation))
        case .endOfStream: .failure(.endOfStream)
        }
    }

    package mutating func open(_ input: inout ReceiveBuffer) -> Result<Void, LinkError>? {
        handshake.receive(&input)
        return outcome
    }

    package mutating func cause(of error: LinkError?) -> LinkError {
        if error == nil { handshake.receiveEndOfStream() }
        guard case .failure(let reason)? = outcome else { return error ?? .endOfStream }
        return reason
    }

    package var deadline: WireInstant? { outcome == nil ? handshakeDeadline : nil }

    package mutating func advance(to now: WireInstant) -> LinkError? {
        guard let deadline, deadline <= now else { return nil }
        handshake.giveUp()
        guard case .failure(let reason)? = outcome else { return .timedOut }
        return reason
    }

    package var hasOutbound: Bool { !handshake.outbound.isEmpty }

    package func withOutbound<Failure: Error>(
        _ body: (UnsafeRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> Int {
        try handshake.outbound.withUnsafeBytes(body)
    }

    package mutating func noteSent(_ count: Int) {
        handshake.outbound.consume(count)
    }
}
