import MQTTWire
import WaybillSession
import WireCore

/// Finds the listeners of a message: the filters with their listeners, as a value.
struct MQTTRouter: Sendable {
    private var entries: [WireName: MQTTSubscriptionEntry] = [:]
    /// The filters by the part that topics are matched against, which a shared and a plain subscription may share.
    private var trie = MQTTTopicTrie<[WireName]>()
    private var identifiers: [UInt32: WireName] = [:]
    private var lastIdentifier: UInt32 = 0
    /// Whether the server's session may have subscription identifiers of an earlier process.
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

    // MARK: Filters

    /// A filter and its listeners, which only the functions below change.
    subscript(filter: String) -> MQTTSubscriptionEntry? {
        get { entries[filter] }
        _modify { yield &entries[filter] }
    }

    /// All filters, in the order of subscribing.
    var all: [MQTTSubscriptionEntry] { entries.values.sorted { $0.identifier < $1.identifier } }

    /// What topics are matched against: the filter without the share name.
    static func matched(by filter: String) -> String {
        (try? MQTTTopicFilter(filter))?.filter ?? filter
    }

    /// Adds a filter with its first listener.
    mutating func add(
        _ subscription: MQTTSubscription,
        _ state: MQTTFilterState,
        _ listener: MessageListener,
        wasLeft: Bool = false
    ) {
        repeat {
            lastIdentifier = lastIdentifier % 268_435_455 + 1
        } while identifiers[lastIdentifier] != nil
        let name = WireName(subscription.filter)
        entries[name] = MQTTSubscriptionEntry(
            subscription: subscription,
            state: state,
            identifier: lastIdentifier,
            listener: listener,
            wasLeft: wasLeft
        )
        identifiers[lastIdentifier] = name
        let matched = Self.matched(by: name.text)
        trie[matched] = (trie[matched] ?? []) + [name]
        forgetRecent()
    }

    /// Adds a listener to a filter that is there.
    mutating func add(_ listener: MessageListener, to filter: String) {
        entries[filter]?.listeners.append(listener)
        forgetRecent()
    }

    /// Keeps the retained messages that are on their way for the listeners that a filter has now.
    mutating func divideRetained(of filter: String) {
        entries[filter]?.divideRetained()
        dividesRetained = true
    }

    /// Notes that the connection is lost.
    mutating func noteLoss() {
        for name in entries.keys { entries[name]?.noteLoss() }
    }

    /// Notes that the server has lost its session.
    mutating func noteSessionLoss() {
        for name in entries.keys { entries[name]?.noteSessionLoss() }
        dividesRetained = false
    }

    /// Removes a listener.
    /// - Returns: The filter if it has no other listener and was removed, too.
    mutating func remove(_ source: MessageSource, from filter: String) -> MQTTSubscriptionEntry? {
        guard let entry = entries[filter],
            entry.listeners.contains(where: { $0.source === source })
        else { return nil }
        guard entry.listeners.count > 1 else { return remove(filter) }
        entries[filter]?.remove(source)
        forgetRecent()
        return nil
    }

    /// Removes a filter with its listeners.
    mutating func remove(_ filter: String) -> MQTTSubscriptionEntry? {
        let name = WireName(filter)
        guard let entry = entries.removeValue(forKey: name) else { return nil }
        identifiers[entry.identifier] = nil
        let matched = Self.matched(by: filter)
        let rest = (trie[matched] ?? []).filter { $0 != name }
        trie[matched] = rest.isEmpty ? nil : rest
        forgetRecent()
        return entry
    }

    private mutating func forgetRecent() {
        last = nil
        recent = [:]
    }

    // MARK: Messages

    /// The listeners of a run of messages.
    ///
    /// Where the server names the subscriptions that matched, only those: it may send a copy for each. Otherwise, and
    /// where the names are those of an earlier process, every filter that matches the topic.
    mutating func listeners(for run: MQTTArrivals.Run) -> [MessageListener] {
        let named = run.subscriptionIdentifiers
        if run.isRetained, dividesRetained {
            return eachOnce(retainedListeners(of: named, matching: run.topic))
        }
        if !named.isEmpty, let found = listeners(of: named, matching: run.topic) {
            return eachOnce(found)
        }
        let topic = WireName(run.topic)
        if let last, last.topic == topic { return last.listeners }
        if let found = recent[topic] {
            last = (topic, found)
            return found
        }
        var found: [MessageListener] = []
        trie.forEachMatch(of: run.topic) { names in
            for name in names {
                guard let listeners = entries[name]?.listeners else { continue }
                // Shared where there is one, as nearly always.
                if found.isEmpty { found = listeners } else { found += listeners }
            }
        }
        found = eachOnce(found)
        guard run.topic.utf8.count <= Self.recentTopicLimit else { return found }
        if recent.count >= Self.recentLimit { recent.removeAll(keepingCapacity: true) }
        recent[topic] = found
        return found
    }

    /// The listeners of the subscriptions that a message names.
    /// - Returns: The listeners; nil when none of the names means what it meant to the server.
    private func listeners(of named: [UInt32], matching topic: String) -> [MessageListener]? {
        var found: [MessageListener]?
        for identifier in named {
            guard let entry = entry(identifier, matching: topic) else { continue }
            found = found.map { $0 + entry.listeners } ?? entry.listeners
        }
        return hasForeignIdentifiers ? found : found ?? []
    }

    /// The filter that a message names, unless the name may be that of an earlier process.
    private func entry(_ identifier: UInt32, matching topic: String) -> MQTTSubscriptionEntry? {
        guard let entry = identifiers[identifier].flatMap({ entries[$0] }) else { return nil }
        return hasForeignIdentifiers && entry.matcher?.matches(topic) != true ? nil : entry
    }

    /// The listeners of a message that the server had retained.
    private func retainedListeners(
        of named: [UInt32],
        matching topic: String
    ) -> [MessageListener] {
        var found = named.compactMap { entry($0, matching: topic) }
        if found.isEmpty {
            trie.forEachMatch(of: topic) { names in
                found += names.compactMap { entries[$0] }
            }
        }
        return found.flatMap { entry in
            let divides = !entry.subscription.retainAsPublished
            return (divides ? entry.retainedTo : nil) ?? entry.listeners
        }
    }

    /// A listener of several filters that match gets the message once.
    private func eachOnce(_ listeners: [MessageListener]) -> [MessageListener] {
        guard sharesListeners, listeners.count > 1 else { return listeners }
        var seen: Set<ObjectIdentifier> = []
        return listeners.filter { seen.insert(ObjectIdentifier($0.source)).inserted }
    }
}
