/// What a client's CONNECT has requested, and the answers that it permits (MQTT 5, 3.1 and 3.2).
///
/// It keeps neither password nor will.
///
/// | progress | event → next progress |
/// | --- | --- |
/// | none | CONNECT is sent → waiting; a packet of the server is refused |
/// | waiting | AUTH → authenticating; CONNACK that refuses → refused; any other packet → answered |
/// | authenticating | as in waiting |
/// | answered | the connection begins → connected |
/// | refused | none |
/// | connected | none |
package struct MQTTClientHandshake: Sendable {
    private enum Progress: Sendable {
        case none, waiting, authenticating, answered, refused, connected
    }

    private var progress = Progress.none
    private var expectsSession = false
    private var requestsResponseInformation = false
    private var refusesProblemInformation = false
    private var namesAuthentication = false

    /// Makes the handshake before CONNECT.
    package init() {}

    /// Makes the handshake after CONNECT.
    ///
    /// - Parameters:
    ///   - packet: The packet that was sent.
    ///   - expectsSession: Whether the server may have a session.
    package init(_ packet: MQTTConnect, expectsSession: Bool) {
        let properties = packet.properties
        progress = .waiting
        self.expectsSession = expectsSession
        requestsResponseInformation = properties.requestResponseInformation == true
        refusesProblemInformation = properties.requestProblemInformation == false
        namesAuthentication = properties.authenticationMethod != nil
    }

    /// Whether CONNECT was sent.
    package var hasBegun: Bool { progress != .none }

    /// Whether CONNECT was sent and nothing has arrived since.
    package var isUnanswered: Bool { progress == .waiting }

    /// Whether the server may yet accept the CONNECT, or what followed it in an authentication.
    package var mayBeAcceptedLate: Bool { progress == .waiting || progress == .authenticating }

    /// Whether the server may have begun a session that this side knows nothing of.
    ///
    /// True after CONNECT until a CONNACK refuses, or until the connection begins. A CONNACK that accepts is not enough:
    /// the server may still have to be verified.
    package var isInDoubt: Bool { mayBeAcceptedLate || progress == .answered }

    /// Notes that the connection begins.
    package mutating func noteConnected() { progress = .connected }

    /// Notes an AUTH of an exchange that the CONNECT has begun.
    package mutating func noteAuthentication() {
        if progress == .waiting { progress = .authenticating }
    }

    /// Handles the first packet of the server, apart from AUTH.
    ///
    /// - Returns: The CONNACK, which accepts or refuses.
    /// - Throws: `MQTTViolation` for any other packet, for a CONNACK that the CONNECT does not permit, and for any packet
    ///   before the CONNECT.
    package mutating func receive(_ packet: MQTTPacket) throws(MQTTViolation) -> MQTTConnackPacket {
        // Nothing answers a CONNECT that was not sent.
        guard progress == .waiting || progress == .authenticating else {
            throw .packetBeforeConnack(packet.kind)
        }
        progress = .answered
        guard case .connack(let connack) = packet else {
            // The CONNECT did not request enhanced authentication (MQTT 5, 4.12.0-6).
            if case .auth = packet { throw .unexpectedAuthentication }
            throw .packetBeforeConnack(packet.kind)
        }
        if connack.reasonCode.isFailure { progress = .refused }
        // A session present although the client expects none, or together with a refusal (MQTT 5, 3.2.2-4, 3.2.2-6).
        guard !connack.sessionPresent || (expectsSession && !connack.reasonCode.isFailure) else {
            throw .unexpectedSessionPresent
        }
        guard requestsResponseInformation || connack.properties.responseInformation == nil else {
            throw .unrequestedResponseInformation
        }
        guard namesAuthentication || connack.properties.authenticationMethod == nil else {
            throw .unexpectedAuthentication
        }
        return connack
    }

    /// Checks a later packet: with Request Problem Information 0 only PUBLISH, CONNACK and DISCONNECT may carry
    /// explanations (MQTT 5, 3.1.2-29).
    ///
    /// - Throws: `unrequestedProblemInformation`.
    package func checkExplanation(_ packet: MQTTPacket) throws(MQTTViolation) {
        guard refusesProblemInformation else { return }
        let properties: MQTTProperties
        switch packet {
        case .puback(let body), .pubrec(let body), .pubrel(let body), .pubcomp(let body):
            properties = body.properties
        case .suback(let suback): properties = suback.properties
        case .unsuback(let unsuback): properties = unsuback.properties
        case .auth(let auth): properties = auth.properties
        default: return
        }
        guard properties.reasonString == nil, properties.userProperties.isEmpty else {
            throw .unrequestedProblemInformation
        }
    }
}
