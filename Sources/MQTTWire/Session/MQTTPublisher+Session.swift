/// A message that does not go on in a session that is resumed.
package struct MQTTDroppedMessage: Sendable {
    /// Why it does not.
    package enum Cause: Hashable, Sendable {
        /// The server has lost the session, and with it how far a QoS 2 message had come: to send it
        /// again might deliver it twice.
        case sessionLost
        /// The server does not take such a message any longer.
        case refused(MQTTSendError)
    }

    /// Who waits; nil when nobody does any longer.
    package let call: (any MQTTCall)?
    package let cause: Cause
}

/// What outlasts the connection (MQTT 5, 4.1 and 4.4).
extension MQTTPublisher {
    /// Whether there is nothing to go on with and nobody to tell.
    package var isIdle: Bool { inflight.count == 0 && queue.count == 0 && lost.isEmpty }

    /// Ends what belongs to the connection and closes the window: messages wait from now on.
    /// - Returns: Who waits for SUBACK or UNSUBACK, in the order of sending.
    package mutating func suspend() -> [any MQTTCall] {
        let requests = inflight.endConnection()
        messagesUnderWay = 0
        repetitions = []
        window = 0
        noteEarliestDeadline()
        return requests.compactMap(\.call)
    }

    private mutating func noteEarliestDeadline() {
        let sent = (lost + inflight.entries).compactMap(\.callerDeadline).min()
        earliestDeadline = [sent, queue.earliestDeadline].compactMap { $0 }.min()
    }

    /// Notes that the server knows nothing of the session: packet identifiers mean nothing any longer.
    ///
    /// QoS 1 messages wait before the queue to be sent as new ones; QoS 2 messages are dropped, since
    /// nobody can tell whether the server has delivered them (MQTT 5, 3.2.2-5).
    package mutating func loseSession() {
        guard inflight.count > 0 else { return }
        var first: [MQTTOutgoingQueue.Entry] = []
        for entry in inflight.entries {
            if case .publishAtLeastOnce(let message) = entry.exchange {
                first.append(
                    MQTTOutgoingQueue.Entry(
                        message: message,
                        call: entry.call,
                        deadline: entry.deadline,
                        wasSent: true
                    )
                )
            } else {
                lost.append(entry)
            }
        }
        inflight = MQTTInflight()
        queue.prepend(first)
    }

    /// Goes on with the session: sends PUBREL and PUBLISH again, then what waits (MQTT 5, 4.4.0-1).
    ///
    /// Each PUBREL goes out at once, in the order of the PUBRECs (4.6.0-4), since it takes no place in
    /// the window (4.9), and before any PUBLISH, so that a server that counts half received messages
    /// has room for those. PUBLISH packets follow in their old order (4.6.0-1), as the window allows.
    ///
    /// - Parameters:
    ///   - window: How many messages may be under way.
    ///   - limits: What the server allows now.
    ///   - writer: Where the packets go.
    /// - Returns: The messages that do not go on, in the order of sending.
    package mutating func resume(
        window: Int,
        limits: MQTTServerLimits,
        to writer: inout MQTTPacketWriter
    ) -> [MQTTDroppedMessage] {
        var dropped = lost.map { MQTTDroppedMessage(call: $0.call, cause: .sessionLost) }
        lost = []
        func check(_ message: MQTTOutgoingMessage) throws(MQTTSendError) {
            try limits.check(message.publish)
            try writer.check(message)
        }
        var releases: [(order: UInt64, identifier: UInt16)] = []
        for entry in inflight.entries where !entry.isOfThisConnection {
            if case .release(let order) = entry.exchange {
                releases.append((order, entry.packetIdentifier))
            } else if let message = entry.message {
                do throws(MQTTSendError) {
                    try check(message)
                    repetitions.append(entry.packetIdentifier)
                } catch {
                    inflight.end(entry.packetIdentifier)
                    dropped.append(MQTTDroppedMessage(call: entry.call, cause: .refused(error)))
                }
            }
        }
        repetitions.reverse()
        for (entry, error) in queue.takeRefused(check) {
            dropped.append(MQTTDroppedMessage(call: entry.call, cause: .refused(error)))
        }
        for (_, identifier) in releases.sorted(by: { $0.order < $1.order }) {
            try? writer.write(.pubrel(.answer(identifier, .success, version: writer.version)))
        }
        self.window = window
        sendWaiting(to: &writer)
        return dropped
    }

    /// Sends a PUBLISH again, with its identifier and DUP 1 (MQTT 5, 3.3.1-1).
    ///
    /// Its exchange may have gone on or ended meanwhile, and its identifier serve another.
    mutating func sendAgain(_ identifier: UInt16, to writer: inout MQTTPacketWriter) {
        guard let entry = inflight.entry(identifier), !entry.isOfThisConnection,
            let message = entry.message
        else { return }
        var publish = message.publish
        publish.packetIdentifier = identifier
        publish.isDuplicate = true
        // It was checked when the session was resumed.
        try? Self.write(publish, message.payload, to: &writer)
        inflight.noteRepeated(identifier)
        messagesUnderWay += 1
    }
}
