import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// Finds the listeners of a message: the filters with their listeners, as a value.
struct MQTTRouter: Sendable {
    private var entries: [WireName: MQTTSubscriptionEntry] = [:]
    /// The filters by the part that topics are matched against, which a shared and a plain subscription may share.
    private var trie = MQTTTopicTrie<[WireName]>()
    /// The filters of each subscription identifier; several where one SUBSCRIBE has them.
    private var identifiers: [UInt32: [WireName]] = [:]
    private var lastIdentifier: UInt32 = 0
    private var lastOrder: UInt64 = 0
    /// The identifiers that the app has chosen: those of filters, and ``former``.
    private var chosen: Set<UInt32> = []
    /// The last identifiers of the app's choice whose filters have ended, the oldest first.
    ///
    /// Messages that name them may be on their way.
    private var former: [UInt32] = []
    private static let formerLimit = 1_024
    /// The number of filters without an identifier.
    private var unnamedCount = 0
    /// The highest subscription identifier (MQTT 5, 3.8.2.1.2).
    static let maximumIdentifier: UInt32 = 268_435_455
    /// Whether the server's session may have subscription identifiers of an earlier process.
    var hasForeignIdentifiers = false

    // Caches, because most messages have the topic of a recent message.
    private var last: (topic: WireName, listeners: [MessageListener])?
    private var lastNamed: (topic: WireName, names: [UInt32], listeners: [MessageListener])?
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
    var all: [MQTTSubscriptionEntry] { entries.values.sorted { $0.order < $1.order } }

    /// What topics are matched against: the filter without what a server takes for an option.
    static func patterns(of filter: String) -> [String] {
        (try? MQTTTopicFilter(filter))?.patterns ?? [filter]
    }

    /// Adds a filter with its first listener.
    mutating func add(
        _ subscription: MQTTSubscription,
        _ state: MQTTFilterState,
        _ listener: MessageListener,
        _ properties: MQTTSubscribeProperties,
        _ groups: inout MQTTIdentifierGroups,
        call: UInt64,
        wasLeft: Bool = false
    ) {
        let identifier: UInt32? =
            switch properties.identifier {
            case .automatic: groups.identifier(of: subscription.filter) { nextIdentifier() }
            case .omitted: nil
            case .number(let number): number
            }
        lastOrder += 1
        let name = WireName(subscription.filter)
        let entry = MQTTSubscriptionEntry(
            subscription: subscription,
            state: state,
            order: lastOrder,
            call: call,
            identifier: identifier,
            properties,
            listener: listener,
            wasLeft: wasLeft
        )
        entries[name] = entry
        if let identifier {
            identifiers[identifier, default: []].append(name)
            if entry.isIdentifierChosen { chosen.insert(identifier) }
        } else {
            unnamedCount += 1
        }
        for pattern in Self.patterns(of: name.text) {
            trie[pattern] = (trie[pattern] ?? []) + [name]
        }
        forgetRecent()
    }

    private mutating func nextIdentifier() -> UInt32 {
        repeat {
            lastIdentifier = lastIdentifier % Self.maximumIdentifier + 1
        } while identifiers[lastIdentifier] != nil || chosen.contains(lastIdentifier)
        return lastIdentifier
    }

    /// Whether a number of the app's choice would name other filters, too, or a filter that has another identifier.
    ///
    /// The transport may have given the number to other filters, if no topic matches both: the topic then tells which
    /// one is meant. With a common topic, two copies of a message could not be told apart.
    func isTaken(_ number: UInt32, for filters: [String]) -> Bool {
        let names = Set(filters.map { WireName($0) })
        let parsed = filters.compactMap { try? MQTTTopicFilter($0) }
        let isOthers =
            identifiers[number]?.contains { name in
                guard !names.contains(name), let entry = entries[name] else { return false }
                return entry.isIdentifierChosen
                    || entry.matcher.map { parsed.contains(where: $0.overlaps) } != false
            } == true
        return isOthers || names.contains { entries[$0].map { $0.identifier != number } == true }
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
        forget(entry.identifier, of: name)
        for pattern in Self.patterns(of: filter) {
            let rest = (trie[pattern] ?? []).filter { $0 != name }
            trie[pattern] = rest.isEmpty ? nil : rest
        }
        forgetRecent()
        return entry
    }

    private mutating func forget(_ identifier: UInt32?, of name: WireName) {
        guard let identifier else {
            unnamedCount -= 1
            return
        }
        let rest = (identifiers[identifier] ?? []).filter { $0 != name }
        identifiers[identifier] = rest.isEmpty ? nil : rest
        guard chosen.contains(identifier), !isChosen(identifier) else { return }
        former.removeAll { $0 == identifier }
        former.append(identifier)
        guard former.count > Self.formerLimit else { return }
        let oldest = former.removeFirst()
        if !isChosen(oldest) { chosen.remove(oldest) }
    }

    /// Whether a filter has an identifier that the app has chosen for it.
    private func isChosen(_ identifier: UInt32) -> Bool {
        identifiers[identifier]?.contains { entries[$0]?.isIdentifierChosen == true } == true
    }

    private mutating func forgetRecent() {
        last = nil
        lastNamed = nil
        recent = [:]
    }

    // MARK: Messages

    /// The listeners of a run of messages.
    ///
    /// Where the server names the subscriptions that matched, only those: it may send a copy for each. Otherwise, and
    /// where the names are those of an earlier process, every filter that matches the topic. A filter without an
    /// identifier gets each message that it matches.
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

    /// The identifiers of the app's choice among those that a message names.
    func chosenIdentifiers(of run: MQTTArrivals.Run) -> [UInt32] {
        guard !chosen.isEmpty else { return [] }
        return run.subscriptionIdentifiers.filter { identifier in
            chosen.contains(identifier)
                && entries(of: identifier, matching: run.topic).contains(
                    where: \.isIdentifierChosen
                )
        }
    }

    /// The listeners of the subscriptions that a message names.
    /// - Returns: The listeners; nil when none of the names means what it meant to the server.
    private mutating func listeners(
        of named: [UInt32],
        matching topic: String
    ) -> [MessageListener]? {
        // A name of one filter needs no search, unless the app has chosen its number, for this filter or another one.
        if unnamedCount == 0, !hasForeignIdentifiers, named.count == 1,
            chosen.isEmpty || !chosen.contains(named[0]), let names = identifiers[named[0]],
            names.count == 1
        {
            return entries[names[0]]?.listeners ?? []
        }
        let name = WireName(topic)
        if let lastNamed, lastNamed.topic == name, lastNamed.names == named {
            return lastNamed.listeners
        }
        var found: [MessageListener]?
        for identifier in named {
            for entry in entries(of: identifier, matching: topic) {
                found = (found ?? []) + entry.listeners
            }
        }
        if found == nil, hasForeignIdentifiers { return nil }
        let all = (found ?? []) + unnamed(matching: topic).flatMap(\.listeners)
        if !hasForeignIdentifiers { lastNamed = (name, named, all) }
        return all
    }

    /// The filters that an identifier of a message means.
    ///
    /// The topic decides where the identifier has several filters, where it may be that of an earlier process, and where
    /// the app has chosen it: a message of its former filter may be on its way.
    private func entries(of identifier: UInt32, matching topic: String) -> [MQTTSubscriptionEntry] {
        guard let names = identifiers[identifier] else { return [] }
        guard names.count > 1 || hasForeignIdentifiers || chosen.contains(identifier) else {
            return names.compactMap { entries[$0] }
        }
        var found: [MQTTSubscriptionEntry] = []
        trie.forEachMatch(of: topic) { matching in
            found += matching.compactMap { entries[$0] }.filter { $0.identifier == identifier }
        }
        return found
    }

    /// The filters without an identifier that match a topic.
    private func unnamed(matching topic: String) -> [MQTTSubscriptionEntry] {
        guard unnamedCount > 0 else { return [] }
        var found: [MQTTSubscriptionEntry] = []
        trie.forEachMatch(of: topic) { matching in
            found += matching.compactMap { entries[$0] }.filter { $0.identifier == nil }
        }
        return found
    }

    /// The listeners of a message that the server had retained.
    private func retainedListeners(
        of named: [UInt32],
        matching topic: String
    ) -> [MessageListener] {
        var found = named.flatMap { entries(of: $0, matching: topic) }
        if found.isEmpty {
            trie.forEachMatch(of: topic) { names in
                found += names.compactMap { entries[$0] }
            }
        } else {
            found += unnamed(matching: topic)
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
