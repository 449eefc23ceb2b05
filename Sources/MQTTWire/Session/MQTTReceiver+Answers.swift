import WireCore

/// The packets that answer the peer.
extension MQTTReceiver {
    enum Answer {
        case puback, pubrec, pubcomp
    }

    /// Writes an answer, without its texts if they exceed the server's limit.
    func answer(
        _ kind: Answer,
        _ identifier: UInt16,
        _ reasonCode: MQTTReasonCode,
        _ properties: MQTTProperties = MQTTProperties(),
        to writer: inout MQTTPacketWriter
    ) {
        var body = MQTTAcknowledgement.answer(identifier, reasonCode, version: writer.version)
        guard properties.isEmpty || writer.version != .v5 else {
            body.properties = properties
            // MQTT 5, 3.4.2-2, 3.4.2-3, 3.5.2-2, 3.5.2-3.
            if (try? write(kind, body, to: &writer)) != nil { return }
            return answer(kind, identifier, reasonCode, to: &writer)
        }
        // At most five bytes: ``MQTTServerLimits/smallestPacketSize``.
        try? write(kind, body, to: &writer)
    }

    private func write(
        _ kind: Answer,
        _ body: MQTTAcknowledgement,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTSendError) {
        switch kind {
        case .puback: try writer.write(.puback(body))
        case .pubrec: try writer.write(.pubrec(body))
        case .pubcomp: try writer.write(.pubcomp(body))
        }
    }
}
