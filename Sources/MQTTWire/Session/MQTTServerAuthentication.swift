import WireCore

/// Enhanced authentication on a server's connection (MQTT 5, 4.12), as far as tests and demonstrations need it.
///
/// | state | event → next state |
/// | --- | --- |
/// | unused | a CONNECT without a method; every AUTH is refused |
/// | connecting (server's turn) | ``challenge(_:)`` → connecting (client's turn); ``finish(_:)`` → idle |
/// | connecting (client's turn) | AUTH 0x18 → connecting (server's turn) |
/// | idle | AUTH 0x19 → repeating (server's turn) |
/// | repeating (server's turn) | ``challenge(_:)`` → repeating (client's turn); ``finish(_:)`` → idle |
/// | repeating (client's turn) | AUTH 0x18 → repeating (server's turn) |
package struct MQTTServerAuthentication: Sendable {
    /// The side that sends the next packet of an exchange.
    private enum Turn: Sendable {
        case client, server
    }

    private enum State: Sendable {
        case unused, idle
        case connecting(Turn)
        case repeating(Turn)
    }

    private var state = State.unused
    private let method: String?

    /// Makes the state after a CONNECT with a method; nil without one.
    package init(method: String? = nil) {
        self.method = method
        if method != nil { state = .connecting(.server) }
    }

    /// Handles the client's AUTH.
    ///
    /// - Throws: `unexpectedAuthentication` without a method and out of turn; `authenticationMethodChanged`,
    ///   `reasonCodeNotAllowed`.
    package mutating func receive(_ packet: MQTTAuth) throws(MQTTViolation) {
        guard let method else { throw .unexpectedAuthentication }
        guard packet.properties.authenticationMethod?.hasSameBytes(as: method) == true else {
            throw .authenticationMethodChanged
        }
        switch (state, packet.reasonCode) {
        case (.connecting(.client), .continueAuthentication): state = .connecting(.server)
        case (.repeating(.client), .continueAuthentication): state = .repeating(.server)
        case (.idle, .reauthenticate): state = .repeating(.server)
        case (.connecting(.client), _), (.repeating(.client), _): throw .reasonCodeNotAllowed(.auth)
        default: throw .unexpectedAuthentication
        }
    }

    /// Asks for the next data.
    ///
    /// - Returns: The AUTH to send; nil if no data is due.
    package mutating func challenge(_ data: [UInt8]?) -> MQTTAuth? {
        switch state {
        case .connecting(.server): state = .connecting(.client)
        case .repeating(.server): state = .repeating(.client)
        default: return nil
        }
        return packet(.continueAuthentication, data)
    }

    /// Ends an exchange with success.
    ///
    /// - Returns: The properties of the CONNACK, or the AUTH that ends a re-authentication; nil without an exchange.
    package mutating func finish(_ data: [UInt8]?) -> MQTTAuth? {
        switch state {
        case .connecting(.server), .repeating(.server): state = .idle
        default: return nil
        }
        return packet(.success, data)
    }

    private func packet(_ reasonCode: MQTTReasonCode, _ data: [UInt8]?) -> MQTTAuth {
        var packet = MQTTAuth(reasonCode: reasonCode)
        packet.properties.authenticationMethod = method
        packet.properties.authenticationData = data
        return packet
    }
}
