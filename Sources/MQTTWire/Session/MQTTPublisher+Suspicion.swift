import WireCore

/// A message that has failed, because the server ends the connections on which it is sent.
package struct MQTTRejectedMessage: Sendable {
    package let message: MQTTOutgoingMessage
    /// The waiting call, and the cause with the number of connections.
    package let dropped: MQTTDroppedMessage
}

/// What the end of a connection says about the messages that are sent again.
package enum MQTTReplayFinding: Sendable {
    /// Nothing.
    case none
    /// Messages are unacknowledged, and it is not known which one is at fault.
    case unclear
    /// The number of suspicious ends in a row has changed for a message; with its number in a store.
    case counted(ends: Int, storedNumber: UInt64?)
    case rejected(MQTTRejectedMessage)
}

/// Messages that a server answers by ending the connection (``ReplaySuspicion``).
extension MQTTPublisher {
    /// Notes PUBACK, PUBREC or PUBCOMP, before it is handled.
    ///
    /// The answer to a PUBREL of an earlier connection says nothing of the messages behind it.
    ///
    /// - Returns: Whether messages may wait behind a suspect; ``sendWaiting(to:)`` follows when the packet was handled.
    mutating func noteAcknowledged(_ packetIdentifier: UInt16) -> Bool {
        guard inflight.isOfThisConnection(packetIdentifier) == true else { return false }
        defer { suspicion.noteAcknowledged(hasItems: messagesUnderWay > 1) }
        return suspicion.isIsolating
    }

    /// Sends the other messages when a suspect has outlived the limit.
    ///
    /// - Returns: The number in the store of the message that is no suspect any more; nil without one.
    mutating func endIsolation(
        at now: WireInstant,
        to writer: inout MQTTPacketWriter
    ) -> UInt64? {
        guard let item = suspicion.endIsolation(at: now) else { return nil }
        let message = inflight.note(.clear, of: UInt16(truncatingIfNeeded: item))
        sendWaiting(to: &writer)
        return message?.storedNumber
    }

    /// Judges the messages by the end of the connection, after ``suspend()``.
    ///
    /// A message that is proved to be at fault has failed. Its packet identifier stays in use as long as the session.
    mutating func noteEnd(_ end: ReplaySuspicion.End, at now: WireInstant) -> MQTTReplayFinding {
        switch suspicion.noteEnd(end, at: now) {
        case .none: return .none
        case .unclear: return .unclear
        case .recorded(let item, let record):
            guard let message = inflight.note(record, of: UInt16(truncatingIfNeeded: item)) else {
                return .none
            }
            return .counted(ends: Int(record.ends), storedNumber: message.storedNumber)
        case .proven(let item, let ends):
            guard let entry = inflight.reject(UInt16(truncatingIfNeeded: item)),
                let message = entry.message
            else { return .none }
            return .rejected(
                MQTTRejectedMessage(
                    message: message,
                    dropped: MQTTDroppedMessage(
                        call: entry.call,
                        cause: .endedConnections(Int(ends))
                    )
                )
            )
        }
    }
}
