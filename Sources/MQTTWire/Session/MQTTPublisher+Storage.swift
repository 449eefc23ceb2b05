/// The exchanges of stored messages (``MQTTStorageStep``).
extension MQTTPublisher {
    /// Begins a step if PUBREC has arrived for a stored message: PUBREL waits for the store.
    ///
    /// - Returns: The number of the message; nil if there is nothing to store.
    package mutating func beginStep(_ pubrec: MQTTAcknowledgement) -> UInt64? {
        guard !pubrec.reasonCode.isFailure, let number = storedNumber(pubrec.packetIdentifier)
        else { return nil }
        _ = storing.append(pubrec.packetIdentifier)
        return number
    }

    /// Whether PUBREC has arrived, and PUBREL waits for the store; a further PUBREC is then ignored.
    package func isStoring(_ pubrec: MQTTAcknowledgement) -> Bool {
        storing.count > 0 && storing.contains(pubrec.packetIdentifier)
    }

    /// The number of a stored message whose PUBREL was not sent.
    private func storedNumber(_ identifier: UInt16) -> UInt64? {
        // Without reserved identifiers the number only identifies the message: no later process continues its exchange.
        guard inflight.reservesIdentifiers, inflight.kind(identifier) == .publishExactlyOnce else {
            return nil
        }
        // Nor does it without the message's own identifier, whose PUBREL would end another exchange.
        let message = inflight.entry(identifier)?.message
        return message?.reservedIdentifier == identifier ? message?.storedNumber : nil
    }

    /// Gives the exchange of a stored message another call, or withdraws the message if it was never sent.
    ///
    /// - Returns: Whether there is an exchange, whose end the call is told.
    mutating func adopt(_ number: UInt64, _ call: any MQTTCall) -> Bool {
        !queue.withdraw(number) && inflight.adopt(number, call)
    }

    /// Sends the PUBREL of a stage that is stored now, when its turn comes.
    package mutating func noteStored(
        _ number: UInt64,
        _ identifier: UInt16,
        to writer: inout MQTTPacketWriter
    ) {
        // The connection may have repeated PUBLISH for another message with this identifier.
        guard storedNumber(identifier) == number else { return }
        storing.settle(awaited: identifier, .success)
        while let (identifier, reasonCode) = storing.next() {
            if inflight.kind(identifier) == .publishExactlyOnce { inflight.release(identifier) }
            write(pubrel: identifier, reasonCode, to: &writer)
        }
    }

    /// Sends PUBREL, behind those that wait for the store (MQTT 5, 4.6.0-4).
    mutating func sendPubrel(
        _ identifier: UInt16,
        _ reasonCode: MQTTReasonCode,
        to writer: inout MQTTPacketWriter
    ) {
        guard storing.count > 0 else { return write(pubrel: identifier, reasonCode, to: &writer) }
        storing.settle(storing.append(identifier), reasonCode)
    }

    private mutating func write(
        pubrel identifier: UInt16,
        _ reasonCode: MQTTReasonCode,
        to writer: inout MQTTPacketWriter
    ) {
        try? writer.write(.pubrel(.answer(identifier, reasonCode, version: writer.version)))
        noteReleased(identifier)
    }
}
