package import WireCore

/// Enhanced authentication on a client's connection (MQTT 5, 4.12): whose turn it is, and which packets fit.
///
/// | state | event → next state |
/// | --- | --- |
/// | unused | a CONNECT without a method; every AUTH is refused |
/// | connecting (server's turn) | AUTH 0x18 → connecting (client's turn); CONNACK → idle |
/// | connecting (client's turn) | ``answer(_:)`` → connecting (server's turn) |
/// | idle | ``reauthenticate(_:until:)`` → repeating (server's turn); AUTH is refused |
/// | repeating (server's turn) | AUTH 0x18 → repeating (client's turn); AUTH 0x00 → idle |
/// | repeating (client's turn) | ``answer(_:)`` → repeating (server's turn) |
package struct MQTTClientAuthentication: Sendable {
    /// The number of the server's AUTH packets in one exchange: 16.
    package static let maximumRoundCount = 16
    /// The bytes of the server's data in one exchange: 256 KiB.
    package static let maximumByteCount = 1 << 18

    /// The meaning of the server's AUTH.
    package enum Step: Hashable, Sendable {
        /// The server asks for the next data of this side.
        case challenge(MQTTProperties)
        /// The server has accepted a re-authentication, with its last data.
        case reauthenticated(MQTTProperties)
    }

    /// The side that sends the next packet of an exchange.
    private enum Turn: Sendable {
        case client, server
    }

    private enum State: Sendable {
        case unused, idle
        case connecting(Turn)
        case repeating(Turn, deadline: WireInstant)
    }

    private var state = State.unused
    private let method: String?
    private var roundCount = 0
    private var byteCount = 0

    /// Makes the state after a CONNECT.
    ///
    /// - Parameter method: The Authentication Method of CONNECT; nil without one.
    package init(method: String? = nil) {
        self.method = method
        if method != nil { state = .connecting(.server) }
    }

    /// Whether the CONNECT has named a method.
    package var isUsed: Bool { method != nil }

    /// Whether an exchange is under way.
    package var isUnderWay: Bool {
        switch state {
        case .unused, .idle: false
        case .connecting, .repeating: true
        }
    }

    /// The end of the time for a re-authentication; nil without one.
    package var deadline: WireInstant? {
        guard case .repeating(_, let deadline) = state else { return nil }
        return deadline
    }

    // MARK: Receiving

    /// Handles AUTH.
    ///
    /// - Returns: Its meaning.
    /// - Throws: `unexpectedAuthentication` outside of an exchange and out of turn; `authenticationMethodChanged`,
    ///   `reasonCodeNotAllowed`, `authenticationTooLong`.
    package mutating func receive(_ packet: MQTTAuth) throws(MQTTViolation) -> Step {
        switch state {
        case .connecting(.server), .repeating(.server, _): break
        case .unused, .idle, .connecting(.client), .repeating(.client, _):
            throw .unexpectedAuthentication
        }
        try check(packet.properties)
        switch (state, packet.reasonCode) {
        case (.connecting, .continueAuthentication):
            try noteRound()
            state = .connecting(.client)
            return .challenge(packet.properties)
        case (.repeating(_, let deadline), .continueAuthentication):
            try noteRound()
            state = .repeating(.client, deadline: deadline)
            return .challenge(packet.properties)
        case (.repeating, .success):
            state = .idle
            return .reauthenticated(packet.properties)
        // CONNACK ends the exchange of a CONNECT, and only a client re-authenticates (MQTT 5, 3.15.2.1).
        default: throw .reasonCodeNotAllowed(.auth)
        }
    }

    /// Handles a CONNACK that accepts the connection.
    ///
    /// - Throws: `unexpectedAuthentication` while this side's answer is due; `authenticationMethodChanged`,
    ///   `authenticationTooLong`.
    package mutating func receive(_ connack: MQTTConnackPacket) throws(MQTTViolation) {
        switch state {
        case .unused, .idle, .repeating: return
        case .connecting(.client): throw .unexpectedAuthentication
        case .connecting(.server):
            try check(connack.properties)
            state = .idle
        }
    }

    /// Checks the method, which stays that of CONNECT (MQTT 5, 4.12.0-5), and the length of the data.
    private mutating func check(_ properties: MQTTProperties) throws(MQTTViolation) {
        guard let method, properties.authenticationMethod?.hasSameBytes(as: method) == true
        else { throw .authenticationMethodChanged }
        byteCount += properties.authenticationData?.count ?? 0
        guard byteCount <= Self.maximumByteCount else { throw .authenticationTooLong }
    }

    private mutating func noteRound() throws(MQTTViolation) {
        roundCount += 1
        guard roundCount <= Self.maximumRoundCount else { throw .authenticationTooLong }
    }

    // MARK: Sending

    /// Answers a challenge.
    ///
    /// - Parameters:
    ///   - data: The Authentication Data; nil for none.
    ///   - explanation: The reason string and the user properties.
    /// - Returns: The AUTH to send, with reason 0x18 (MQTT 5, 4.12.0-3).
    /// - Throws: `authenticationNotDue` without a challenge.
    package mutating func answer(
        _ data: [UInt8]?,
        explaining explanation: MQTTProperties = MQTTProperties()
    ) throws(MQTTSendError) -> MQTTAuth {
        switch state {
        case .connecting(.client): state = .connecting(.server)
        case .repeating(.client, let deadline): state = .repeating(.server, deadline: deadline)
        default: throw .authenticationNotDue
        }
        return packet(.continueAuthentication, data, explanation)
    }

    /// Begins a re-authentication.
    ///
    /// - Parameters:
    ///   - data: The Authentication Data; nil for none.
    ///   - explanation: The reason string and the user properties.
    ///   - deadline: The end of the time for the exchange.
    /// - Returns: The AUTH to send, with reason 0x19 and the method of CONNECT (MQTT 5, 4.12.1-1).
    /// - Throws: `authenticationNotDue` without a method, before CONNACK, and during another exchange.
    package mutating func reauthenticate(
        _ data: [UInt8]?,
        explaining explanation: MQTTProperties = MQTTProperties(),
        until deadline: WireInstant
    ) throws(MQTTSendError) -> MQTTAuth {
        guard case .idle = state else { throw .authenticationNotDue }
        (roundCount, byteCount) = (0, 0)
        state = .repeating(.server, deadline: deadline)
        return packet(.reauthenticate, data, explanation)
    }

    private func packet(
        _ reasonCode: MQTTReasonCode,
        _ data: [UInt8]?,
        _ explanation: MQTTProperties
    ) -> MQTTAuth {
        var packet = MQTTAuth(reasonCode: reasonCode)
        packet.properties = explanation
        packet.properties.authenticationMethod = method
        packet.properties.authenticationData = data
        return packet
    }
}
