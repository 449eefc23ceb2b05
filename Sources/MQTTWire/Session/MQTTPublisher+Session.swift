import WireCore

/// A message that is dropped when a session is resumed.
package struct MQTTDroppedMessage: Sendable {
    /// The reason for the drop.
    package enum Cause: Hashable, Sendable {
        /// The server has lost the session, and with it the progress of a QoS 2 message: a second PUBLISH might deliver
        /// it twice.
        case sessionLost
        /// The server no longer accepts such a message.
        case refused(MQTTSendError)
        /// The server has ended as many connections because of the message.
        case endedConnections(Int)
    }

    /// The waiting call; nil if no call waits any more.
    package let call: (any MQTTCall)?
    package let cause: Cause
}

/// The parts of the state that outlive the connection (MQTT 5, 4.1 and 4.4).
extension MQTTPublisher {
    /// Whether there is neither a message to continue nor a call to report to.
    package var isIdle: Bool { unansweredCount == 0 }

    /// The number of packets that the server has not answered yet, also those that wait for room in the window.
    package var unansweredCount: Int {
        inflight.count - Int(inflight.rejectedCount) + queue.count + lost.count
    }

    /// Ends the exchanges of the connection and closes the window: messages wait from now on.
    ///
    /// - Returns: The calls that wait for SUBACK or UNSUBACK, and those of messages that are sent once, in the order of
    ///   sending.
    package mutating func suspend() -> [any MQTTCall] {
        let requests = inflight.endConnection()
        let unsent = queue.takeSentOnce()
        messagesUnderWay = 0
        departures = MQTTDepartures()
        repetitions = []
        _ = storing.takeAll()
        window = 0
        noteEarliestDeadline()
        return requests.compactMap(\.call) + unsent.compactMap(\.call)
    }

    private mutating func noteEarliestDeadline() {
        let sent = (lost + inflight.entries).compactMap(\.callerDeadline).min()
        earliestDeadline = [sent, queue.earliestDeadline].compactMap { $0 }.min()
    }

    /// Notes that the server has lost the session, so that packet identifiers are void.
    ///
    /// QoS 1 messages wait before the queue and are sent as new ones. QoS 2 messages are dropped, because the server
    /// may already have delivered them (MQTT 5, 3.2.2-5), unless no caller could decide about them
    /// (``MQTTOutgoingMessage/isSentAnew``). A message is not sent anew when its call has ended: the caller was told
    /// that it has failed.
    package mutating func loseSession() {
        guard inflight.count > 0 else { return }
        var first: [MQTTOutgoingQueue.Entry] = []
        for entry in inflight.entries {
            switch entry.exchange {
            case .publishAtLeastOnce(let message):
                guard let call = entry.call else { continue }
                first.append(.init(message: message, call: call, deadline: entry.deadline))
            case .publishExactlyOnce(let message) where message.isSentAnew:
                first.append(.init(message: message, call: entry.call, deadline: entry.deadline))
            case .publishExactlyOnce, .release: lost.append(entry)
            case .rejected, .subscribe, .unsubscribe: break
            }
        }
        inflight = MQTTInflight(reservesIdentifiers: inflight.reservesIdentifiers)
        queue.prepend(first)
    }

    /// Adds the exchange of an earlier process.
    ///
    /// A message whose identifier is in use by an earlier one waits, and so do those that follow it. If it is released,
    /// the earlier exchange has ended, and only its removal was not stored.
    ///
    /// - Returns: The call of the exchange that has ended.
    mutating func restore(
        _ message: MQTTOutgoingMessage,
        isReleased: Bool,
        call: any MQTTCall
    ) -> (any MQTTCall)? {
        let ended = isReleased ? message.reservedIdentifier.flatMap { inflight.end($0) } : nil
        let exchange: MQTTInflight.Exchange =
            message.publish.qos == .exactlyOnce
            ? .publishExactlyOnce(message) : .publishAtLeastOnce(message)
        let deadline = WireInstant(nanoseconds: .max)
        guard isReleased || queue.isEmpty,
            let identifier = inflight.begin(
                exchange,
                as: message.reservedIdentifier,
                call: call,
                deadline: deadline
            )
        else {
            queue.append(.init(message: message, call: call, deadline: deadline))
            return nil
        }
        inflight.noteEarlier(identifier)
        if isReleased { inflight.release(identifier) }
        return ended?.call
    }

    /// Resumes the session: resends PUBREL and PUBLISH, then sends the waiting messages (MQTT 5, 4.4.0-1).
    ///
    /// Each PUBREL is sent at once, in the order of the PUBRECs (4.6.0-4), since it takes no room in the window (4.9).
    /// They are sent before any PUBLISH, so that a server that limits incomplete QoS 2 messages has room for these.
    /// PUBLISH packets follow in their old order (4.6.0-1), as the window allows.
    ///
    /// - Parameters:
    ///   - window: The number of messages that may be in flight.
    ///   - limits: The present limits of the server.
    ///   - writer: The writer of the packets.
    /// - Returns: The dropped messages, in the order of sending.
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
            if case .release(let order, _) = entry.exchange {
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
            noteReleased(identifier)
        }
        self.window = window
        sendWaiting(to: &writer)
        return dropped
    }

    /// Resends a PUBLISH with its identifier and DUP 1 (MQTT 5, 3.3.1-1).
    ///
    /// Does nothing if the exchange has continued or ended meanwhile; its identifier may then belong to another
    /// exchange.
    mutating func sendAgain(_ identifier: UInt16, to writer: inout MQTTPacketWriter) {
        guard let entry = inflight.entry(identifier), !entry.isOfThisConnection,
            let message = entry.message
        else { return }
        let packet = message.packet(as: identifier, isDuplicate: true, at: writer.now)
        // Checked when the session was resumed.
        try? Self.write(packet, message.payload, to: &writer)
        inflight.noteRepeated(identifier)
        noteWritten(message, identifier)
    }
}
