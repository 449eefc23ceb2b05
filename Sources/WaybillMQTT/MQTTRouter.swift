import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// One filter with its options and its listeners.
struct MQTTSubscriptionEntry: Sendable {
    var subscription: MQTTSubscription
    let identifier: UInt32
    /// Matches topics with the filter; nil if the filter is not valid.
    let matcher: MQTTTopicFilter?
    var listeners: [MessageListener]
    /// Resolves with the granted quality of service when the server has answered.
    ///
    /// No task waits for the answer of a deferred filter.
    var answer: Promise<QoS>
    /// The quality of service that the server has granted in its present session; nil before.
    var granted: QoS?
    /// The last subscription that the server has granted in any session, for resubscribing; nil if it granted none.
    var established: MQTTSubscription?
    /// Whether the next connection sends the SUBSCRIBE.
    var isDeferred = false
    /// The listeners of the last SUBSCRIBE, which get the retained messages after its SUBACK.
    ///
    /// Nil for all listeners of the filter.
    var retainedTo: [MessageListener]?
    /// The SUBSCRIBEs without SUBACK, in the order of sending.
    var pending: [Pending] = []

    /// A SUBSCRIBE without SUBACK.
    struct Pending: Sendable {
        /// The number, which is unique among SUBSCRIBEs.
        let number: UInt64
        /// The retained messages that it requests.
        let retainHandling: MQTTRetainHandling
        /// The listeners that it is sent for; empty for all listeners of the filter.
        var joining: [MessageListener]
    }

    /// The listeners that a SUBSCRIBE without SUBACK is sent for.
    var joining: [MessageListener] { pending.flatMap(\.joining) }

    /// Returns the subscription to send; with retained messages if listeners have joined.
    func asked(for joining: [MessageListener]) -> MQTTSubscription {
        var asked = subscription
        if !joining.isEmpty { asked.retainHandling = .send }
        return asked
    }

    /// Whether another SUBSCRIBE gets the retained messages for a further listener with these options.
    ///
    /// A shared subscription gets no retained messages (MQTT 5, 4.8.2). With Retain As Published, retained messages
    /// cannot be told apart from new ones.
    func renewsRetained(for subscription: MQTTSubscription) -> Bool {
        subscription.retainHandling != .doNotSend && !self.subscription.retainAsPublished
            && matcher?.shareName == nil
    }
}

/// A filter in a SUBSCRIBE.
struct MQTTAskedFilter: Sendable {
    let subscription: MQTTSubscription
    let identifier: UInt32
    /// The number of the SUBSCRIBE.
    let number: UInt64
}

/// Decides which listeners get a message: the filters with their listeners, as a value.
struct MQTTRouter: Sendable {
    private var entries: [WireName: MQTTSubscriptionEntry] = [:]
    /// The filters by the part that topics are matched against, which a shared and a plain subscription may share.
    private var trie = MQTTTopicTrie<[WireName]>()
    private var identifiers: [UInt32: WireName] = [:]
    private var lastIdentifier: UInt32 = 0
    /// The number of the last SUBSCRIBE.
    private var lastNumber: UInt64 = 0
    /// Whether the server's session, with its subscription identifiers, may be that of an earlier process.
    var hasForeignIdentifiers = false

    // Caches, because most messages have the topic of a recent message.
    private var last: (topic: WireName, listeners: [MessageListener])?
    private var recent: [WireName: [MessageListener]] = [:]
    private static let recentLimit = 1_024
    /// The longest topic in the cache, in bytes; all topics together have at most 256 KiB.
    private static let recentTopicLimit = 256
    /// Whether a listener may have several filters, so that one message may match it twice.
    var sharesListeners = false
    /// Whether only some listeners of a filter get its retained messages.
    private var dividesRetained = false

    private mutating func forgetRecent() {
        last = nil
        recent = [:]
    }

    subscript(filter: String) -> MQTTSubscriptionEntry? { entries[filter] }

    /// The sources of all listeners, in the order of subscribing.
    var sources: [MessageSource] {
        entries.values.sorted { $0.identifier < $1.identifier }
            .flatMap { $0.listeners.map(\.source) }
    }

    /// The filters that the server has granted in any session, in the order of subscribing.
    var establishedFilters: [String] {
        entries.values.filter { $0.established != nil }
            .sorted { $0.identifier < $1.identifier }
            .map(\.subscription.filter)
    }

    /// Whether the server has granted a filter in any session.
    func isEstablished(_ filter: String) -> Bool { entries[filter]?.established != nil }

    /// An identifier that is not in use, 1 to 268,435,455 (MQTT 5, 3.8.2.1.2).
    private mutating func makeIdentifier() -> UInt32 {
        repeat {
            lastIdentifier = lastIdentifier % 268_435_455 + 1
        } while identifiers[lastIdentifier] != nil
        return lastIdentifier
    }

    /// Returns the part of a filter that topics are matched against: without the prefix of a shared subscription.
    static func matched(by filter: String) -> String {
        (try? MQTTTopicFilter(filter))?.filter ?? filter
    }

    /// Adds a filter with its first listener.
    @discardableResult
    mutating func add(
        _ subscription: MQTTSubscription,
        listener: MessageListener
    ) -> MQTTSubscriptionEntry {
        let filter = Self.matched(by: subscription.filter)
        let entry = MQTTSubscriptionEntry(
            subscription: subscription,
            identifier: makeIdentifier(),
            matcher: try? MQTTTopicFilter(subscription.filter),
            listeners: [listener],
            answer: Promise()
        )
        entries[subscription.filter] = entry
        let name = WireName(subscription.filter)
        identifiers[entry.identifier] = name
        trie[filter] = (trie[filter] ?? []) + [name]
        forgetRecent()
        return entry
    }

    /// Adds a listener to a known filter.
    mutating func add(_ listener: MessageListener, to filter: String) {
        entries[filter]?.listeners.append(listener)
        forgetRecent()
    }

    /// Adds a listener to a filter for which a SUBSCRIBE was sent.
    ///
    /// - Parameters:
    ///   - listener: The listener.
    ///   - subscription: The filter and options of the listener.
    /// - Returns: The answer to wait for, and the filter of another SUBSCRIBE. That one is sent if the listener wants a
    ///   higher quality of service, or the retained messages, which the other listeners already got.
    mutating func join(
        _ listener: MessageListener,
        _ subscription: MQTTSubscription
    ) -> (answer: Promise<QoS>, asked: MQTTAskedFilter?)? {
        let filter = subscription.filter
        guard let entry = entries[filter] else { return nil }
        add(listener, to: filter)
        let isBetter = entry.subscription.qos < subscription.qos
        let wantsRetained = entry.renewsRetained(for: subscription)
        if !isBetter, !wantsRetained {
            // Retained messages for the other listeners may still arrive.
            if subscription.retainHandling == .doNotSend, entry.retainedTo == nil {
                entries[filter]?.retainedTo = entry.listeners
                dividesRetained = true
            }
            return (entry.answer, nil)
        }
        if !isBetter, let index = entry.pending.lastIndex(where: { $0.retainHandling == .send }) {
            // The pending SUBSCRIBE also gets the retained messages for this listener.
            if entry.pending[index].joining.isEmpty {
                entries[filter]?.retainedTo?.append(listener)
            } else {
                entries[filter]?.pending[index].joining.append(listener)
            }
            return (entry.answer, nil)
        }
        if wantsRetained {
            entries[filter]?.retainedTo = entry.retainedTo ?? entry.listeners
            dividesRetained = true
        }
        let answer = raise(filter, to: isBetter ? subscription : entry.subscription)
        return (answer, ask(for: filter, joining: wantsRetained ? [listener] : []))
    }

    /// Notes a SUBSCRIBE.
    ///
    /// - Parameters:
    ///   - filter: The filter.
    ///   - joining: The listeners that get the retained messages; empty for all listeners of the filter.
    /// - Returns: The filter to send; nil if it is unknown.
    mutating func ask(for filter: String, joining: [MessageListener] = []) -> MQTTAskedFilter? {
        entries[filter].map { note($0, joining: joining) }
    }

    /// Notes another SUBSCRIBE of a filter, for all listeners that have joined.
    ///
    /// - Returns: The filter to send.
    mutating func askAgain(for entry: MQTTSubscriptionEntry) -> MQTTAskedFilter {
        note(entry, joining: entry.joining)
    }

    private mutating func note(
        _ entry: MQTTSubscriptionEntry,
        joining: [MessageListener]
    ) -> MQTTAskedFilter {
        let asked = entry.asked(for: joining)
        lastNumber += 1
        entries[asked.filter]?.pending.append(
            .init(number: lastNumber, retainHandling: asked.retainHandling, joining: joining)
        )
        return MQTTAskedFilter(
            subscription: asked,
            identifier: entry.identifier,
            number: lastNumber
        )
    }

    /// Forgets a SUBSCRIBE that has failed; no retained messages follow it.
    mutating func forget(_ asked: MQTTAskedFilter) {
        entries[asked.subscription.filter]?.pending.removeAll { $0.number == asked.number }
    }

    /// Notes the SUBACK of a filter: the retained messages that follow it are for the listeners that have joined.
    ///
    /// - Parameters:
    ///   - asked: The filter that was sent.
    ///   - hasBacklog: Whether retained messages of an earlier SUBSCRIBE may also follow.
    mutating func noteAnswer(of asked: MQTTAskedFilter, hasBacklog: Bool) {
        let filter = asked.subscription.filter
        guard let entry = entries[filter],
            let answered = entry.pending.first(where: { $0.number == asked.number })
        else { return }
        forget(asked)
        guard !answered.joining.isEmpty else { return }
        entries[filter]?.retainedTo = (hasBacklog ? entry.retainedTo ?? [] : []) + answered.joining
    }

    /// Replaces the options of a filter for another SUBSCRIBE.
    ///
    /// - Returns: The answer of that SUBSCRIBE.
    mutating func raise(_ filter: String, to subscription: MQTTSubscription) -> Promise<
        QoS
    > {
        entries[filter]?.subscription = subscription
        let answer = Promise<QoS>()
        entries[filter]?.answer = answer
        return answer
    }

    /// Notes that the server has granted a filter.
    mutating func grant(_ filter: String, _ quality: QoS) {
        establish(filter)
        entries[filter]?.granted = quality
        guard let entry = entries[filter], entry.isDeferred else { return }
        entries[filter]?.isDeferred = false
        // No task has waited for this answer; listeners that join later find it.
        for listener in entry.listeners { listener.source.grantedQoS = quality }
        entry.answer.resolve(.success(quality))
    }

    /// Notes that the server has granted a filter in a session that has ended.
    mutating func establish(_ filter: String) {
        guard let entry = entries[filter] else { return }
        entries[filter]?.established = entry.subscription
    }

    /// Notes that the server has lost its session.
    mutating func forgetGrants() {
        for filter in entries.keys {
            entries[filter]?.granted = nil
            // In a new session the server sends the retained messages again, to all listeners.
            entries[filter]?.retainedTo = nil
            entries[filter]?.pending = []
        }
        dividesRetained = false
    }

    /// Adds a listener while there is no connection.
    ///
    /// The next connection subscribes, unless the server already has the filter with at least that quality of service.
    mutating func addLater(_ listener: MessageListener, _ subscription: MQTTSubscription) {
        let filter = subscription.filter
        guard let entry = entries[filter] else {
            add(subscription, listener: listener)
            entries[filter]?.isDeferred = true
            return
        }
        add(listener, to: filter)
        let isBetter = entry.subscription.qos < subscription.qos
        if isBetter {
            entries[filter]?.subscription = subscription
            entries[filter]?.granted = nil
        }
        // A SUBSCRIBE that was pending when the connection was lost fails only the call that sent it.
        guard isBetter || entry.established == nil else {
            if case .success(let quality)? = entry.answer.result {
                listener.source.grantedQoS = quality
            }
            return
        }
        guard !entry.isDeferred else { return }
        entries[filter]?.isDeferred = true
        entries[filter]?.answer = Promise()
    }

    /// The filters that the server has lost, or for which no SUBSCRIBE was sent yet, in the order of subscribing.
    var ungranted: [MQTTSubscriptionEntry] {
        entries.values.filter { ($0.established != nil || $0.isDeferred) && $0.granted == nil }
            .sorted { $0.identifier < $1.identifier }
    }

    /// Restores the granted options of a filter after a failed SUBSCRIBE; a filter that was never granted is removed.
    ///
    /// - Returns: The sources of the removed listeners.
    mutating func revoke(_ filter: String, _ answer: Promise<QoS>) -> [MessageSource] {
        guard let entry = entries[filter], entry.answer === answer else { return [] }
        guard let established = entry.established else { return remove(filter) }
        entries[filter]?.subscription = established
        let former = Promise<QoS>()
        former.resolve(.success(MQTTMapping.quality(established.qos)))
        entries[filter]?.answer = former
        return []
    }

    /// Removes a listener, and the filter with its last listener.
    ///
    /// - Returns: Whether the filter was removed.
    mutating func remove(_ source: MessageSource, from filter: String) -> Bool {
        guard let entry = entries[filter],
            entry.listeners.contains(where: { $0.source === source })
        else { return false }
        forgetRecent()
        entries[filter]?.listeners.removeAll { $0.source === source }
        entries[filter]?.retainedTo?.removeAll { $0.source === source }
        for index in entry.pending.indices {
            entries[filter]?.pending[index].joining.removeAll { $0.source === source }
        }
        guard entry.listeners.count == 1 else { return false }
        _ = remove(filter)
        return true
    }

    /// Removes a filter.
    ///
    /// - Returns: The sources of its listeners.
    mutating func remove(_ filter: String) -> [MessageSource] {
        let name = WireName(filter)
        guard let entry = entries.removeValue(forKey: name) else { return [] }
        forgetRecent()
        identifiers[entry.identifier] = nil
        let matched = Self.matched(by: filter)
        let rest = (trie[matched] ?? []).filter { $0 != name }
        trie[matched] = rest.isEmpty ? nil : rest
        return entry.listeners.map(\.source)
    }

    /// Returns the listeners that get a message.
    ///
    /// If the message has subscription identifiers, only the listeners of these subscriptions get it. The server may
    /// send a copy for each subscription. Without identifiers, or with those of an earlier process, the listeners of
    /// every matching filter get it.
    mutating func listeners(for publish: MQTTPublish) -> [MessageListener] {
        if publish.isRetained, dividesRetained {
            return eachOnce(retainedListeners(for: publish))
        }
        if !publish.properties.isEmpty {
            let named = publish.properties.subscriptionIdentifiers
            if !named.isEmpty {
                if let found = listeners(to: publish.topic, named: named) {
                    return eachOnce(found)
                }
            }
        }
        let topic = WireName(publish.topic)
        if let last, last.topic == topic { return last.listeners }
        if let found = recent[topic] {
            last = (topic, found)
            return found
        }
        var found: [MessageListener] = []
        trie.forEachMatch(of: publish.topic) { filters in
            for filter in filters {
                guard let listeners = entries[filter]?.listeners else { continue }
                // With one filter, as nearly always, the array is shared and not copied.
                if found.isEmpty { found = listeners } else { found += listeners }
            }
        }
        found = eachOnce(found)
        guard publish.topic.utf8.count <= Self.recentTopicLimit else { return found }
        if recent.count >= Self.recentLimit { recent.removeAll(keepingCapacity: true) }
        recent[topic] = found
        return found
    }

    /// Removes duplicates, so that a listener with several matching filters gets the message once.
    private func eachOnce(_ listeners: [MessageListener]) -> [MessageListener] {
        guard sharesListeners, listeners.count > 1 else { return listeners }
        var seen: Set<ObjectIdentifier> = []
        return listeners.filter { seen.insert(ObjectIdentifier($0.source)).inserted }
    }

    /// Returns the listeners that get a retained message.
    private func retainedListeners(for publish: MQTTPublish) -> [MessageListener] {
        func listeners(of entry: MQTTSubscriptionEntry) -> [MessageListener] {
            entry.subscription.retainAsPublished
                ? entry.listeners : entry.retainedTo ?? entry.listeners
        }
        let named = publish.properties.subscriptionIdentifiers
            .compactMap { identifiers[$0].flatMap { entries[$0] } }
            .filter { !hasForeignIdentifiers || $0.matcher?.matches(publish.topic) == true }
        if !named.isEmpty { return named.flatMap(listeners) }
        var found: [MessageListener] = []
        trie.forEachMatch(of: publish.topic) { filters in
            for filter in filters {
                if let entry = entries[filter] { found += listeners(of: entry) }
            }
        }
        return found
    }

    /// Returns the listeners of the subscriptions that a message names by identifier.
    ///
    /// - Returns: The listeners; nil if every identifier belongs to an earlier process.
    private func listeners(to topic: String, named: [UInt32]) -> [MessageListener]? {
        var found: [MessageListener]?
        for identifier in named {
            guard let entry = identifiers[identifier].flatMap({ entries[$0] }) else { continue }
            if hasForeignIdentifiers, entry.matcher?.matches(topic) != true { continue }
            found = found.map { $0 + entry.listeners } ?? entry.listeners
        }
        return hasForeignIdentifiers ? found : found ?? []
    }
}
