import MQTTWire
import WireCore

/// A message on its way to an MQTT client.
struct LoopbackCopy: Sendable {
    var client: UInt64
    let session: UInt64
    let message: MQTTOutgoingMessage
}

/// The MQTT side of the loopback broker: sessions, subscriptions and retained messages.
struct LoopbackExchange: Sendable {
    private struct Subscriber: Sendable {
        let session: UInt64
        let subscription: MQTTSubscription
        let identifier: UInt32?
        let shareName: WireName?
    }

    private struct Retained: Sendable {
        let publish: MQTTPublish
        let payload: [UInt8]
    }

    private var trie = MQTTTopicTrie<[Subscriber]>()
    private var retained: [WireName: Retained] = [:]
    private var turn = 0

    /// The limits of the messages that a session keeps for a client that is away.
    let limits: LoopbackSession.Limits
    /// All sessions, numbered in the order in which they began.
    var sessions: [UInt64: LoopbackSession] = [:]
    /// The sessions of client identifiers.
    var sessionNumbers: [WireName: UInt64] = [:]
    /// The sessions of connections.
    var clientSessions: [UInt64: UInt64] = [:]
    var lastSession: UInt64 = 0
    /// The number of messages for absent clients that were dropped.
    var droppedCount = 0

    init(limits: LoopbackSession.Limits) {
        self.limits = limits
    }

    /// The bytes of the retained messages, and of those in sessions whose clients are away.
    var byteCount: Int {
        sessions.values.reduce(0) { $0 + $1.byteCount }
            + retained.reduce(0) { $0 + $1.key.text.utf8.count + $1.value.payload.count }
    }

    /// Forgets all sessions, subscriptions and retained messages.
    mutating func forget() {
        let last = lastSession
        self = LoopbackExchange(limits: limits)
        // A message on its way to a session of before must not reach another one.
        lastSession = last
    }

    // MARK: Subscriptions

    /// Adds a subscription, or replaces the session's one of the same filter.
    /// - Returns: The retained messages that it brings.
    mutating func subscribe(
        _ subscription: MQTTSubscription,
        identifier: UInt32?,
        _ session: UInt64
    ) -> [MQTTOutgoingMessage] {
        guard sessions[session] != nil, let filter = try? MQTTTopicFilter(subscription.filter)
        else { return [] }
        var subscribers = trie[filter.filter] ?? []
        let before = subscribers.count
        let shareName = filter.shareName.map(WireName.init)
        subscribers.removeAll { $0.session == session && $0.shareName == shareName }
        let isNew = subscribers.count == before
        subscribers.append(
            Subscriber(
                session: session,
                subscription: subscription,
                identifier: identifier,
                shareName: shareName
            )
        )
        trie[filter.filter] = subscribers
        sessions[session]?.filters.insert(WireName(filter.filter))

        let handling = subscription.retainHandling
        guard filter.shareName == nil, handling == .send || (handling == .sendIfNew && isNew) else {
            return []
        }
        var matcher = MQTTTopicTrie<Bool>()
        matcher[filter.filter] = true
        return retained.sorted { $0.key < $1.key }.compactMap { topic, kept in
            var isMatch = false
            matcher.forEachMatch(of: topic.text) { _ in isMatch = true }
            guard isMatch else { return nil }
            var publish = kept.publish
            publish.qos = min(
                publish.qos,
                subscription.qos
            )
            publish.isRetained = true
            if let identifier { publish.properties.subscriptionIdentifiers = [identifier] }
            return MQTTOutgoingMessage(publish: publish, payload: kept.payload)
        }
    }

    /// Removes subscriptions.
    /// - Returns: A code for each filter.
    mutating func unsubscribe(_ filters: [String], _ session: UInt64) -> [MQTTReasonCode] {
        filters.map { string in
            guard let filter = try? MQTTTopicFilter(string), let subscribers = trie[filter.filter]
            else { return .noSubscriptionExisted }
            let rest = subscribers.filter {
                $0.session != session || $0.shareName != filter.shareName.map(WireName.init)
            }
            trie[filter.filter] = rest.isEmpty ? nil : rest
            return rest.count < subscribers.count ? .success : .noSubscriptionExisted
        }
    }

    /// Removes all subscriptions of a session.
    mutating func removeSubscriptions(of session: UInt64, _ filters: Set<WireName>) {
        for filter in filters.sorted() {
            let rest = (trie[filter.text] ?? []).filter { $0.session != session }
            trie[filter.text] = rest.isEmpty ? nil : rest
        }
    }

    /// The filters that a session is subscribed to, in order.
    func filters(of session: UInt64) -> [String] {
        (sessions[session]?.filters ?? []).sorted().flatMap { filter in
            (trie[filter.text] ?? []).filter { $0.session == session }
                .map(\.subscription.filter)
        }
    }

    // MARK: Routing

    /// Finds the sessions that get a message, once each, at the best quality that any of their filters asks for.
    ///
    /// Keeps it in the sessions of clients that are away.
    ///
    /// - Parameters:
    ///   - publish: The message without its payload.
    ///   - payload: The payload.
    ///   - sender: The connection that it came over.
    ///   - now: The time.
    /// - Returns: The messages for clients that are there, in the order of their sessions, those of shared
    ///   subscriptions last.
    mutating func route(
        _ publish: MQTTPublish,
        payload: ByteSlice,
        from sender: UInt64,
        at now: WireInstant
    ) -> [LoopbackCopy] {
        removeExpired(at: now)
        let bytes = payload.bytes
        if publish.isRetained {
            retained[publish.topic] =
                bytes.isEmpty ? nil : Retained(publish: Self.stripped(publish), payload: bytes)
        }
        let sender = clientSessions[sender]
        var plain: [UInt64: [Subscriber]] = [:]
        var shared: [WireName: [Subscriber]] = [:]
        trie.forEachMatch(of: publish.topic) { subscribers in
            for subscriber in subscribers {
                if let name = subscriber.shareName {
                    let group = WireName("\(name.text)/\(subscriber.subscription.filter)")
                    shared[group, default: []].append(subscriber)
                } else if !subscriber.subscription.noLocal || subscriber.session != sender {
                    plain[subscriber.session, default: []].append(subscriber)
                }
            }
        }
        var deliveries = plain.sorted { $0.key < $1.key }.map { session, subscribers in
            (session: session, message: Self.message(publish, bytes, for: subscribers))
        }
        for (_, group) in shared.sorted(by: { $0.key < $1.key }) {
            turn += 1
            // Clients that are there go before those that are away (MQTT 5, 4.8.2).
            let present = group.filter { sessions[$0.session]?.isOpen == true }
            let choice = present.isEmpty ? group : present
            let chosen = choice[turn % choice.count]
            deliveries.append((chosen.session, Self.message(publish, bytes, for: [chosen])))
        }
        return deliveries.compactMap { session, message in
            if let client = sessions[session]?.client, sessions[session]?.isOpen == true {
                return LoopbackCopy(client: client, session: session, message: message)
            }
            keep(message, for: session)
            return nil
        }
    }

    private static func message(
        _ publish: MQTTPublish,
        _ payload: [UInt8],
        for subscribers: [Subscriber]
    ) -> MQTTOutgoingMessage {
        var copy = stripped(publish)
        let best = subscribers.map(\.subscription.qos).max() ?? .atMostOnce
        copy.qos = min(publish.qos, best)
        copy.isRetained =
            publish.isRetained && subscribers.contains { $0.subscription.retainAsPublished }
        let identifiers = subscribers.compactMap(\.identifier)
        if !identifiers.isEmpty { copy.properties.subscriptionIdentifiers = identifiers }
        return MQTTOutgoingMessage(publish: copy, payload: payload)
    }

    /// Without what belongs to the sender's connection.
    private static func stripped(_ publish: MQTTPublish) -> MQTTPublish {
        var copy = publish
        copy.packetIdentifier = 0
        copy.isDuplicate = false
        copy.payload = .empty
        return copy
    }
}
