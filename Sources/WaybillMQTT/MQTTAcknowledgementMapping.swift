import MQTTWire
import Waybill
import WaybillSession

/// Converts `ack` and `nack` requests into the reason and the texts of PUBACK and PUBREC.
enum MQTTAcknowledgementMapping {
    /// Converts a request.
    ///
    /// - Parameters:
    ///   - request: The request; its headers become user properties.
    ///   - version: The version of the protocol.
    /// - Returns: The message, and the answer to the server.
    /// - Throws: `unsupported`, `invalidEntry`.
    static func answer(
        _ request: Request,
        version: MQTTVersion
    ) throws(WaybillError) -> (message: Message.ID, answer: MQTTReceiverAnswer) {
        let isAccepted = request.command.code == .ack
        guard request.topic == nil, request.body.isEmpty else {
            throw MQTTMapping.unsupported("topic or body of an \(request.command.name)", request)
        }
        guard version == .v5 || isAccepted else {
            throw MQTTMapping.unsupported("nack in 3.1.1", request)
        }
        guard let message = request.command.message else {
            throw WaybillError(.invalidEntry, "the command names no message").about(request)
        }
        var options = OptionReader(request)
        // Read where the message is acknowledged.
        _ = options.take(.awaitsCompletion)
        guard version == .v5 else {
            try MQTTMapping.refuse([.headers: request.statesHeaders], request, version)
            try options.finish(for: MQTTMapping.name(of: version))
            return (message, MQTTReceiverAnswer(.success))
        }
        let reasonCode = options.take(.reasonCode)
        let reason = options.take(.reason)
        try options.finish(for: MQTTMapping.name(of: version))
        var answer = MQTTReceiverAnswer(isAccepted ? .success : .unspecifiedError)
        if let stated = reasonCode {
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
        answer.properties.reasonString = reason
        answer.properties.userProperties = request.headers.pairs
        let packet = MQTTAcknowledgement(
            packetIdentifier: 1,
            reasonCode: answer.reasonCode,
            properties: answer.properties
        )
        try MQTTMapping.checkEncoding(request) { (scratch) throws(MQTTEncodingError) in
            try MQTTPacket.puback(packet).encode(into: &scratch, version: .v5)
        }
        return (message, answer)
    }
}
