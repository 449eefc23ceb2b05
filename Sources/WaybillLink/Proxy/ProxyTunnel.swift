import HTTPWire
package import WireCore

/// A proxy's tunnel as a layer: first the handshake, then all data unchanged.
///
/// Data that the proxy sent after its response is read first.
package struct ProxyTunnel: StreamLayer {
    package static var isTransparent: Bool { true }

    private var handshake: HTTPTunnelHandshake
    private let handshakeDeadline: WireInstant
    /// The response, and then the data after it.
    private var received = ReceiveBuffer(capacity: 4_096)

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

    package mutating func open(
        _ input: UnsafeRawBufferPointer
    ) -> (consumed: Int, outcome: Result<Void, LinkError>?) {
        received.append(input)
        handshake.receive(&received)
        return (input.count, outcome)
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

    package var holdsData: Bool { received.count > 0 }

    package mutating func decode(
        _ input: UnsafeRawBufferPointer,
        into space: UnsafeMutableRawBufferPointer
    ) -> (outcome: LayerOutcome, consumed: Int, produced: Int) {
        let count = min(received.count, space.count)
        received.withUnsafeBytes { space.copyMemory(from: .init(rebasing: $0[..<count])) }
        received.consume(count)
        received.release()
        return (.fine, 0, count)
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
