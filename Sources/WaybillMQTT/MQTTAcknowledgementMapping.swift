import MQTTWire
import Waybill
import WaybillSession

/// Converts `ack` and `nack` requests into the reason and the texts of PUBACK and PUBREC.
enum MQTTAcknowledgementMapping {
    /// Converts a request.
    ///
    /// - Parameters:
    ///   - request: The request; its headers become user properties.
    ///   - options: The options of its command.
    ///   - isAccepted: False for `nack`.
    ///   - version: The version of the protocol.
    /// - Returns: The answer to the server.
    /// - Throws: `unsupported`, `invalidEntry`.
    static func answer(
        _ request: Request,
        _ options: AcknowledgementOptions,
        isAccepted: Bool,
        version: MQTTVersion
    ) throws(WaybillError) -> MQTTReceiverAnswer {
        guard options.transaction == nil else {
            throw MQTTMapping.unsupported("transactions", request)
        }
        guard request.topic == nil, request.body.isEmpty else {
            throw MQTTMapping.unsupported("topic or body of an \(request.command.name)", request)
        }
        guard version == .v5 else {
            guard isAccepted else { throw MQTTMapping.unsupported("nack in 3.1.1", request) }
            try MQTTMapping.refuse(
                [
                    .headers: request.statesHeaders,
                    .acknowledgementReason: options.statesReason,
                ],
                request,
                version
            )
            return MQTTReceiverAnswer(.success)
        }
        var answer = MQTTReceiverAnswer(isAccepted ? .success : .unspecifiedError)
        if let stated = options.reasonCode {
            let code = MQTTReasonCode(rawValue: stated.rawValue)
            // Tables 3-4 and 3-5 have the same codes. 0x10 is for servers.
            guard !isAccepted, code.isFailure,
                MQTTReasonCode.isAllowed(code, in: .puback, version: .v5)
            else {
                throw WaybillError(
                    .invalidEntry,
                    "a client does not \(request.command.name) with this reason code"
                )
                .about(request)
            }
            answer.reasonCode = code
        }
        answer.properties.reasonString = options.reason
        answer.properties.userProperties = request.headers.pairs
        let packet = MQTTAcknowledgement(
            packetIdentifier: 1,
            reasonCode: answer.reasonCode,
            properties: answer.properties
        )
        try MQTTMapping.checkEncoding(request) { (scratch) throws(MQTTEncodingError) in
            try MQTTPacket.puback(packet).encode(into: &scratch, version: .v5)
        }
        return answer
    }
}
