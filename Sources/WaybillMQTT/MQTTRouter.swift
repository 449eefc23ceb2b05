import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// One filter with its options and everybody who listens to it.
struct MQTTSubscriptionEntry: Sendable {
    var subscription: MQTTSubscription
    let identifier: UInt32
    /// What tells which topics it matches.
    let matcher: MQTTTopicFilter?
    var listeners: [MessageListener]
    /// Resolves with the granted quality of service once the server has answered; nobody waits for that of a filter that
    /// is deferred.
    var answer: Promise<QoS>
    /// What the server has granted, in the session that it has; nil when it has not, or not yet.
    var granted: QoS?
    /// What the server has granted at any time, to be subscribed to again; nil when it never has.
    var established: MQTTSubscription?
    /// Whether it is left to the next connection to ask for it.
    var isDeferred = false
    /// The listeners that the last SUBSCRIBE was sent for, which get the retained messages that follow its SUBACK; nil for
    /// all of the filter.
    var retainedTo: [MessageListener]?
    /// What was sent without a SUBACK yet, in the order of sending.
    var pending: [Pending] = []

    /// A SUBSCRIBE without SUBACK.
    struct Pending: Sendable {
        /// Its number, which no other SUBSCRIBE has.
        let number: UInt64
        /// Which retained messages it asks for.
        let retainHandling: MQTTRetainHandling
        /// The listeners that it is sent for; none where it is for all of the filter.
        var joining: [MessageListener]
    }

    /// The listeners that a SUBSCRIBE without SUBACK is sent for.
    var joining: [MessageListener] { pending.flatMap(\.joining) }

    /// What is asked for: with the retained messages, where listeners have joined for them.
    func asked(for joining: [MessageListener]) -> MQTTSubscription {
        var asked = subscription
        if !joining.isEmpty { asked.retainHandling = .send }
        return asked
    }

    /// Whether a further listener with these options gets the retained messages by another SUBSCRIBE.
    ///
    /// A shared subscription has none (MQTT 5, 4.8.2). With Retain As Published they look like those that are sent now.
    func renewsRetained(for subscription: MQTTSubscription) -> Bool {
        subscription.retainHandling != .doNotSend && !self.subscription.retainAsPublished
            && matcher?.shareName == nil
    }
}

/// A filter as a SUBSCRIBE asks for it.
struct MQTTAskedFilter: Sendable {
    let subscription: MQTTSubscription
    let identifier: UInt32
    /// The number of the SUBSCRIBE.
    let number: UInt64
}

/// Who gets a message: filters, and their listeners.
struct MQTTRouter: Sendable {
    private var entries: [WireName: MQTTSubscriptionEntry] = [:]
    /// By what topics are matched against; a shared subscription and a plain one may have the same.
    private var trie = MQTTTopicTrie<[WireName]>()
    private var identifiers: [UInt32: WireName] = [:]
    private var lastIdentifier: UInt32 = 0
    /// The number of the last SUBSCRIBE.
    private var lastNumber: UInt64 = 0
    /// Whether the server's session may be that of an earlier process, and the identifiers in it, too.
    var hasForeignIdentifiers = false

    // Most messages have a topic that another one had a moment ago.
    private var last: (topic: WireName, listeners: [MessageListener])?
    private var recent: [WireName: [MessageListener]] = [:]
    private static let recentLimit = 1_024
    /// The longest topic that is remembered, in bytes: 256 KiB in all.
    private static let recentTopicLimit = 256
    /// Whether some listeners may have several filters, which one message may match.
    var sharesListeners = false
    /// Whether some listeners of a filter get its retained messages and others do not.
    private var dividesRetained = false

    private mutating func forgetRecent() {
        last = nil
        recent = [:]
    }

    subscript(filter: String) -> MQTTSubscriptionEntry? { entries[filter] }

    /// All listeners, in the order of subscribing, for the end.
    var sources: [MessageSource] {
        entries.values.sorted { $0.identifier < $1.identifier }
            .flatMap { $0.listeners.map(\.source) }
    }

    /// What the server has granted at any time, in the order of subscribing.
    var establishedFilters: [String] {
        entries.values.filter { $0.established != nil }
            .sorted { $0.identifier < $1.identifier }
            .map(\.subscription.filter)
    }

    /// Whether the server has granted a filter at any time.
    func isEstablished(_ filter: String) -> Bool { entries[filter]?.established != nil }

    /// An identifier that is not in use, 1 to 268,435,455 (MQTT 5, 3.8.2.1.2).
    private mutating func makeIdentifier() -> UInt32 {
        repeat {
            lastIdentifier = lastIdentifier % 268_435_455 + 1
        } while identifiers[lastIdentifier] != nil
        return lastIdentifier
    }

    /// What topics are matched against for a filter: less than it says where the subscription is shared.
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

    /// Adds a listener to a filter that is there.
    mutating func add(_ listener: MessageListener, to filter: String) {
        entries[filter]?.listeners.append(listener)
        forgetRecent()
    }

    /// Adds a listener to a filter that the server was asked for.
    ///
    /// - Parameters:
    ///   - listener: The listener.
    ///   - subscription: What it asks for.
    /// - Returns: The answer to wait for; and what is to be sent, if the listener wants a better quality of service or the
    ///   retained messages, which the others have had.
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
            // Those that others were promised may still be on their way.
            if subscription.retainHandling == .doNotSend, entry.retainedTo == nil {
                entries[filter]?.retainedTo = entry.listeners
                dividesRetained = true
            }
            return (entry.answer, nil)
        }
        if !isBetter, let index = entry.pending.lastIndex(where: { $0.retainHandling == .send }) {
            // That SUBSCRIBE brings them.
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

    /// Notes that a filter is asked for.
    ///
    /// - Parameters:
    ///   - filter: The filter.
    ///   - joining: The listeners that get the retained messages; none for all of the filter.
    /// - Returns: What is to be sent.
    mutating func ask(for filter: String, joining: [MessageListener] = []) -> MQTTAskedFilter? {
        entries[filter].map { note($0, joining: joining) }
    }

    /// Notes that a filter is asked for again, with all who have joined.
    /// - Returns: What is to be sent.
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

    /// Forgets what was asked for in vain: no retained messages follow.
    mutating func forget(_ asked: MQTTAskedFilter) {
        entries[asked.subscription.filter]?.pending.removeAll { $0.number == asked.number }
    }

    /// Notes the SUBACK of a filter: the retained messages that follow it are for those who have joined.
    ///
    /// - Parameters:
    ///   - asked: What was sent.
    ///   - hasBacklog: Whether those of an earlier SUBSCRIBE may follow, too.
    mutating func noteAnswer(of asked: MQTTAskedFilter, hasBacklog: Bool) {
        let filter = asked.subscription.filter
        guard let entry = entries[filter],
            let answered = entry.pending.first(where: { $0.number == asked.number })
        else { return }
        forget(asked)
        guard !answered.joining.isEmpty else { return }
        entries[filter]?.retainedTo = (hasBacklog ? entry.retainedTo ?? [] : []) + answered.joining
    }

    /// Asks for more than before, with an answer of its own.
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
        // Nobody has waited for the answer; whoever joins them finds it.
        for listener in entry.listeners { listener.source.grantedQoS = quality }
        entry.answer.resolve(.success(quality))
    }

    /// Notes that the server has granted a filter, in a session that is over.
    mutating func establish(_ filter: String) {
        guard let entry = entries[filter] else { return }
        entries[filter]?.established = entry.subscription
    }

    /// Notes that the server has lost its session.
    mutating func forgetGrants() {
        for filter in entries.keys {
            entries[filter]?.granted = nil
            // A new session has them sent once more, to all.
            entries[filter]?.retainedTo = nil
            entries[filter]?.pending = []
        }
        dividesRetained = false
    }

    /// Adds a listener, and leaves the filter to the next connection unless the server has it, as good.
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
        // What was asked for over a connection that is over fails for who has asked, and for nobody else.
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

    /// What the server has granted once and does not have any longer, or has not been asked for yet, in the order of
    /// subscribing.
    var ungranted: [MQTTSubscriptionEntry] {
        entries.values.filter { ($0.established != nil || $0.isDeferred) && $0.granted == nil }
            .sorted { $0.identifier < $1.identifier }
    }

    /// Goes back to what the server has granted, or to nothing, after a filter was asked for in vain: whoever
    /// asks next begins anew.
    /// - Returns: Who listens no longer.
    mutating func revoke(_ filter: String, _ answer: Promise<QoS>) -> [MessageSource] {
        guard let entry = entries[filter], entry.answer === answer else { return [] }
        guard let established = entry.established else { return remove(filter) }
        entries[filter]?.subscription = established
        let former = Promise<QoS>()
        former.resolve(.success(MQTTMapping.quality(established.qos)))
        entries[filter]?.answer = former
        return []
    }

    /// Removes a listener.
    /// - Returns: Whether it was there and the filter went with it, as it was the last.
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
    /// - Returns: Who listened.
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

    /// Who gets a message.
    ///
    /// Where the server names the subscriptions that matched, those alone: it may send a copy for each. Otherwise, and
    /// where the names are those of an earlier process, every filter that matches the topic.
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
                // Shared where there is one, as nearly always.
                if found.isEmpty { found = listeners } else { found += listeners }
            }
        }
        found = eachOnce(found)
        guard publish.topic.utf8.count <= Self.recentTopicLimit else { return found }
        if recent.count >= Self.recentLimit { recent.removeAll(keepingCapacity: true) }
        recent[topic] = found
        return found
    }

    /// A listener of several filters that match gets the message once.
    private func eachOnce(_ listeners: [MessageListener]) -> [MessageListener] {
        guard sharesListeners, listeners.count > 1 else { return listeners }
        var seen: Set<ObjectIdentifier> = []
        return listeners.filter { seen.insert(ObjectIdentifier($0.source)).inserted }
    }

    /// Who gets a message that the server had kept.
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

    /// Who listens to the subscriptions that a message names.
    /// - Returns: Them; nil when none of the names means what it meant to the server.
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
