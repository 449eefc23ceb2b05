import MQTTWire
import WireCore

/// Who gets what: subscriptions and retained messages of the loopback broker.
struct LoopbackExchange: Sendable {
    private struct Subscriber: Sendable {
        let client: UInt64
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
    /// What a client may have subscribed to, to find it when the client goes.
    private var filters: [UInt64: Set<WireName>] = [:]
    /// What is to be published if a client goes without taking its leave.
    private var wills: [UInt64: MQTTWill] = [:]
    private var turn = 0

    mutating func setWill(_ will: MQTTWill?, of client: UInt64) {
        wills[client] = will
    }

    /// Adds a subscription, or replaces the client's one of the same filter.
    /// - Returns: The retained messages that it brings.
    mutating func subscribe(
        _ subscription: MQTTSubscription,
        identifier: UInt32?,
        _ client: UInt64
    ) -> [MQTTOutgoingMessage] {
        guard let filter = try? MQTTTopicFilter(subscription.filter) else { return [] }
        var subscribers = trie[filter.filter] ?? []
        let before = subscribers.count
        let shareName = filter.shareName.map(WireName.init)
        subscribers.removeAll { $0.client == client && $0.shareName == shareName }
        let isNew = subscribers.count == before
        subscribers.append(
            Subscriber(
                client: client,
                subscription: subscription,
                identifier: identifier,
                shareName: shareName
            )
        )
        trie[filter.filter] = subscribers
        filters[client, default: []].insert(WireName(filter.filter))

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
            publish.qualityOfService = min(
                publish.qualityOfService,
                subscription.qualityOfService
            )
            publish.isRetained = true
            if let identifier { publish.properties.subscriptionIdentifiers = [identifier] }
            return MQTTOutgoingMessage(publish: publish, payload: kept.payload)
        }
    }

    /// Removes subscriptions.
    /// - Returns: A code for each filter.
    mutating func unsubscribe(_ filters: [String], _ client: UInt64) -> [MQTTReasonCode] {
        filters.map { string in
            guard let filter = try? MQTTTopicFilter(string), let subscribers = trie[filter.filter]
            else { return .noSubscriptionExisted }
            let rest = subscribers.filter {
                $0.client != client || $0.shareName != filter.shareName.map(WireName.init)
            }
            trie[filter.filter] = rest.isEmpty ? nil : rest
            return rest.count < subscribers.count ? .success : .noSubscriptionExisted
        }
    }

    /// Removes everything of a client.
    /// - Returns: Its will.
    mutating func remove(_ client: UInt64) -> MQTTWill? {
        for filter in (filters.removeValue(forKey: client) ?? []).sorted() {
            let rest = (trie[filter.text] ?? []).filter { $0.client != client }
            trie[filter.text] = rest.isEmpty ? nil : rest
        }
        return wills.removeValue(forKey: client)
    }

    /// Finds who gets a message, once each, at the best quality that any of its filters asks for.
    /// - Returns: The messages, in the order of the clients' connections, those of shared subscriptions last.
    mutating func route(
        _ publish: MQTTPublish,
        payload: ByteSlice,
        from sender: UInt64
    ) -> [(client: UInt64, message: MQTTOutgoingMessage)] {
        let bytes = payload.bytes
        if publish.isRetained {
            retained[publish.topic] =
                bytes.isEmpty ? nil : Retained(publish: Self.stripped(publish), payload: bytes)
        }
        var plain: [UInt64: [Subscriber]] = [:]
        var shared: [WireName: [Subscriber]] = [:]
        trie.forEachMatch(of: publish.topic) { subscribers in
            for subscriber in subscribers {
                if let name = subscriber.shareName {
                    let group = WireName("\(name.text)/\(subscriber.subscription.filter)")
                    shared[group, default: []].append(subscriber)
                } else if !subscriber.subscription.noLocal || subscriber.client != sender {
                    plain[subscriber.client, default: []].append(subscriber)
                }
            }
        }
        var deliveries = plain.sorted { $0.key < $1.key }.map { client, subscribers in
            (client: client, message: Self.message(publish, bytes, for: subscribers))
        }
        for (_, group) in shared.sorted(by: { $0.key < $1.key }) {
            turn += 1
            let chosen = group[turn % group.count]
            deliveries.append((chosen.client, Self.message(publish, bytes, for: [chosen])))
        }
        return deliveries
    }

    private static func message(
        _ publish: MQTTPublish,
        _ payload: [UInt8],
        for subscribers: [Subscriber]
    ) -> MQTTOutgoingMessage {
        var copy = stripped(publish)
        let best = subscribers.map(\.subscription.qualityOfService).max() ?? .atMostOnce
        copy.qualityOfService = min(publish.qualityOfService, best)
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
