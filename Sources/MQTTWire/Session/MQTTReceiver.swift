import WireCore

/// The receiver's side of QoS 1 and 2 (MQTT 5, 4.3): the same at a client and at a server.
///
/// | QoS 2 identifier | PUBLISH | taken by the application | PUBREL |
/// | --- | --- | --- | --- |
/// | new | delivered | | PUBCOMP, not found |
/// | delivered | ignored: PUBREC is to come | PUBREC | PUBCOMP |
/// | PUBREC sent | PUBREC again | | PUBCOMP |
package struct MQTTReceiver: Sendable {
    /// What to do with a message.
    package enum Arrival: Sendable {
        /// Hand it to the application; with a receipt, if it must be acknowledged.
        case deliver(MQTTDeliveryReceipt?)
        /// It was handed over before.
        case repetition
    }

    /// How many messages may wait to be acknowledged.
    ///
    /// A peer that was told nothing may have as many under way as there are packet identifiers, and
    /// no more, however it repeats them.
    private let maximum: Int
    private var publishAcknowledgements = MQTTAcknowledgementQueue()
    private var receivedAcknowledgements = MQTTAcknowledgementQueue()
    /// QoS 2 identifiers between PUBLISH and PUBREL, and whether PUBREC was sent.
    private var exactlyOnce: [UInt16: Bool] = [:]

    package init(maximum: UInt16 = .max) {
        self.maximum = Int(maximum)
    }

    /// Handles PUBLISH.
    /// - Throws: `receiveMaximumExceeded` (MQTT 5, 3.3.4-9).
    package mutating func receive(
        _ publish: MQTTPublish,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTViolation) -> Arrival {
        let identifier = publish.packetIdentifier
        switch publish.qualityOfService {
        case .atMostOnce:
            return .deliver(nil)
        case .atLeastOnce:
            try checkMaximum()
            let serial = publishAcknowledgements.append(identifier)
            return .deliver(MQTTDeliveryReceipt(qualityOfService: .atLeastOnce, serial: serial))
        case .exactlyOnce:
            if let wasAcknowledged = exactlyOnce[identifier] {
                // Acknowledged again, not delivered again (MQTT 5, 4.3.3-10).
                if wasAcknowledged { answer(.pubrec, identifier, .success, to: &writer) }
                return .repetition
            }
            try checkMaximum()
            exactlyOnce[identifier] = false
            let serial = receivedAcknowledgements.append(identifier)
            return .deliver(MQTTDeliveryReceipt(qualityOfService: .exactlyOnce, serial: serial))
        }
    }

    private func checkMaximum() throws(MQTTViolation) {
        guard publishAcknowledgements.count + exactlyOnce.count < maximum else {
            throw .receiveMaximumExceeded
        }
    }

    /// Acknowledges a message that has been taken, or refused with a reason, in its turn.
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ reasonCode: MQTTReasonCode,
        to writer: inout MQTTPacketWriter
    ) {
        switch receipt.qualityOfService {
        case .atMostOnce: return
        case .atLeastOnce:
            publishAcknowledgements.settle(receipt.serial, reasonCode)
            while let (identifier, reasonCode) = publishAcknowledgements.next() {
                answer(.puback, identifier, reasonCode, to: &writer)
            }
        case .exactlyOnce:
            receivedAcknowledgements.settle(receipt.serial, reasonCode)
            while let (identifier, reasonCode) = receivedAcknowledgements.next() {
                // A refused message is over: the identifier is new again (MQTT 5, 4.3.3-9).
                exactlyOnce[identifier] = reasonCode.isFailure ? nil : true
                answer(.pubrec, identifier, reasonCode, to: &writer)
            }
        }
    }

    /// Handles PUBREL; one that nobody knows is answered too, else the sender would repeat it for ever.
    package mutating func receivePubrel(
        _ pubrel: MQTTAcknowledgement,
        to writer: inout MQTTPacketWriter
    ) {
        let isKnown = exactlyOnce.removeValue(forKey: pubrel.packetIdentifier) != nil
        let reasonCode = isKnown ? MQTTReasonCode.success : .packetIdentifierNotFound
        answer(.pubcomp, pubrel.packetIdentifier, reasonCode, to: &writer)
    }

    private enum Answer {
        case puback, pubrec, pubcomp
    }

    private func answer(
        _ kind: Answer,
        _ identifier: UInt16,
        _ reasonCode: MQTTReasonCode,
        to writer: inout MQTTPacketWriter
    ) {
        let body = MQTTAcknowledgement.answer(identifier, reasonCode, version: writer.version)
        // Five bytes at the most, which no peer can refuse.
        switch kind {
        case .puback: try? writer.write(.puback(body))
        case .pubrec: try? writer.write(.pubrec(body))
        case .pubcomp: try? writer.write(.pubcomp(body))
        }
    }
}
