import MQTTWire
import WaybillLink
import WireCore

/// An MQTT session as a test sees it.
package struct LoopbackSessionReport: Hashable, Sendable {
    package let clientIdentifier: String
    package let isConnected: Bool
    /// The filters of its subscriptions, in the order of their bytes.
    package let filters: [String]
    /// The messages of QoS 1 and 2 to the client that are under way or wait.
    package let queuedMessageCount: Int
}

/// What a test may look at.
extension LoopbackBroker {
    /// All MQTT sessions, in the order in which they began.
    package var sessions: [LoopbackSessionReport] {
        let now = environment.clock.now
        exchange.withLock { $0.removeExpired(at: now) }
        let found = exchange.withLock { exchange in
            exchange.sessions.sorted { $0.key < $1.key }.map { number, session in
                (session, exchange.filters(of: number))
            }
        }
        return found.map { session, filters in
            var count = session.messageCount
            if session.isOpen, let client = session.client, case .mqtt(let client)? = member(client)
            {
                count += client.withCore(.paced) { core, _ in core.outgoingMessageCount }
            }
            return LoopbackSessionReport(
                clientIdentifier: session.clientIdentifier,
                isConnected: session.isOpen,
                filters: filters,
                queuedMessageCount: count
            )
        }
    }

    /// How many messages for MQTT clients that were away have been dropped, since sessions are bounded.
    package var droppedMessageCount: Int { exchange.withLock { $0.droppedCount } }

    /// The messages of a queue or topic that STOMP subscribers have got and not acknowledged.
    package func unacknowledgedCount(of destination: String) -> Int {
        destinations.withLock { $0.unacknowledgedCount(destination) }
    }

    /// The messages of a queue that wait for a subscriber.
    package func waitingCount(of destination: String) -> Int {
        destinations.withLock { $0.waitingCount(destination) }
    }

    /// Whether nothing is under way over any connection.
    ///
    /// No byte waits to leave, no exchange of QoS 1 or 2 is open in either direction, no STOMP message waits to be
    /// acknowledged and no transaction is open. What is kept for clients that are away does not count.
    package var isIdle: Bool {
        destinations.withLock { $0.isIdle } && eventTopics.withLock { $0.isIdle }
            && membersInOrder.allSatisfy(\.isIdle)
    }
}

extension LoopbackMember {
    /// Whether nothing is under way.
    fileprivate var isIdle: Bool {
        switch self {
        case .opening: false
        case .mqtt(let client):
            client.unsentByteCount == 0
                && client.withCore(.paced) { core, _ in !core.hasMessagesUnderWay }
        case .stomp(let client): client.unsentByteCount == 0
        case .http(let client): client.unsentByteCount == 0
        }
    }
}
