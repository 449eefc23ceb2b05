import MQTTWire
import Waybill
import WaybillSession

/// Converts disconnect requests into DISCONNECT packets.
enum MQTTDisconnectMapping {
    /// Makes the packet of a request.
    ///
    /// - Parameters:
    ///   - request: The request; its headers become user properties.
    ///   - version: The version of the protocol.
    ///   - sessionExpiry: The session expiry interval of the CONNECT, in seconds; nil if it had none.
    /// - Returns: The packet, which can be encoded.
    /// - Throws: `unsupported`, `invalidEntry`.
    static func packet(
        _ request: Request,
        _ version: MQTTVersion,
        sessionExpiry: UInt32?
    ) throws(WaybillError) -> MQTTDisconnect {
        guard request.topic == nil, request.body.isEmpty else {
            throw MQTTMapping.unsupported("topic or body of a disconnect", request)
        }
        var options = OptionReader(request)
        // Read where the connection is closed.
        _ = options.take(.timeout)
        _ = options.take(.drainTimeout)
        guard version == .v5 else {
            try MQTTMapping.refuse([.headers: request.statesHeaders], request, version)
            try options.finish(for: MQTTMapping.name(of: version))
            return MQTTDisconnect()
        }
        let publishesWill: Bool = options.take(.publishesWill)
        let reasonCode = options.take(.reasonCode)
        let reason = options.take(.reason)
        let expiry = options.take(.sessionExpiry)
        try options.finish(for: MQTTMapping.name(of: version))
        var packet = MQTTDisconnect()
        if publishesWill { packet.reasonCode = .disconnectWithWillMessage }
        if let stated = reasonCode {
            let code = MQTTReasonCode(rawValue: stated.rawValue)
            // Table 3-10 of MQTT 5 has the codes that a client may send.
            guard MQTTReasonCode.mayDisconnect(code, heardBy: .server),
                !publishesWill || code == .disconnectWithWillMessage
            else { throw invalid("a client does not disconnect with this reason code", request) }
            packet.reasonCode = code
        }
        packet.properties.reasonString = reason
        packet.properties.userProperties = request.headers.pairs
        if let expiry {
            // MQTT 5, 3.14.2.2.2.
            guard sessionExpiry ?? 0 > 0 || MQTTMapping.seconds(expiry) == 0 else {
                throw invalid("a session that has no expiry cannot get one at its end", request)
            }
            packet.properties.sessionExpiryInterval = MQTTMapping.seconds(expiry)
        }
        try MQTTMapping.checkEncoding(request) { (scratch) throws(MQTTEncodingError) in
            try MQTTPacket.disconnect(packet).encode(into: &scratch, version: .v5)
        }
        return packet
    }

    private static func invalid(_ what: String, _ request: Request) -> WaybillError {
        WaybillError(.invalidEntry, what).about(request)
    }
}
