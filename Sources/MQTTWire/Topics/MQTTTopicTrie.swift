import WireCore

/// Values by topic filter; the cost of a look-up depends on the levels of the topic, not on the number of filters.
///
/// The tree has one node per level. All nodes are in one array and refer to each other by index, so a filter of 32,768
/// levels costs memory and no stack.
package struct MQTTTopicTrie<Value: Sendable>: Sendable {
    /// One level of a filter or a topic, compared by its bytes.
    private struct Level: Hashable, Sendable {
        let text: Substring

        static var single: Level { Level(text: "+") }
        static var multi: Level { Level(text: "#") }

        static func == (left: Level, right: Level) -> Bool {
            left.text.hasSameBytes(as: right.text)
        }

        func hash(into hasher: inout Hasher) {
            text.hashBytes(into: &hasher)
        }
    }

    private struct Node: Sendable {
        var children: [Level: Int] = [:]
        /// The child for `+`.
        var single: Int?
        /// The value of the filter that ends here.
        var value: Value?
        /// The value of the filter that ends with `#` below here.
        var multi: Value?
        var parent: Int
        var level: Level

        var isUnused: Bool {
            children.isEmpty && single == nil && value == nil && multi == nil
        }
    }

    private var nodes = [Node(parent: 0, level: Level(text: ""))]
    private var free: [Int] = []
    /// Filters without a wildcard, which need a single look-up.
    private var exact: [WireName: Value] = [:]
    private var wildcardCount = 0

    package init() {}

    package var count: Int { exact.count + wildcardCount }

    package var isEmpty: Bool { count == 0 }

    /// The value of a valid filter.
    package subscript(filter: String) -> Value? {
        get {
            guard Self.hasWildcard(filter) else { return exact[WireName(filter)] }
            let (path, isMulti) = Self.split(filter)
            var index = 0
            for level in path {
                guard let next = child(of: index, level) else { return nil }
                index = next
            }
            return isMulti ? nodes[index].multi : nodes[index].value
        }
        set {
            guard Self.hasWildcard(filter) else {
                exact[WireName(filter)] = newValue
                return
            }
            if let newValue {
                insert(newValue, filter)
            } else if self[filter] != nil {
                remove(filter)
            }
        }
    }

    /// Calls `body` with the value of every filter that matches.
    package func forEachMatch(of topic: String, _ body: (Value) -> Void) {
        if let value = exact[WireName(topic)] { body(value) }
        guard wildcardCount > 0 else { return }
        let levels = Self.levels(topic)
        let isReserved = topic.utf8.first == UInt8(ascii: "$")
        // Pairs of a node and its depth.
        var open = [(node: 0, depth: 0)]
        while let (index, depth) = open.popLast() {
            let node = nodes[index]
            let mayBeWild = depth > 0 || !isReserved
            // `#` also matches the level above it (4.7.1.2).
            if let value = node.multi, mayBeWild { body(value) }
            guard depth < levels.count else {
                if let value = node.value { body(value) }
                continue
            }
            if let next = node.children[levels[depth]] { open.append((next, depth + 1)) }
            if let next = node.single, mayBeWild { open.append((next, depth + 1)) }
        }
    }

    private static func hasWildcard(_ filter: String) -> Bool {
        filter.utf8.contains { $0 == UInt8(ascii: "#") || $0 == UInt8(ascii: "+") }
    }

    /// The levels of a topic, split at its slashes byte by byte.
    private static func levels(_ topic: String) -> [Level] {
        topic.split(atByte: "/").map(Level.init(text:))
    }

    private static func split(_ filter: String) -> (path: [Level], isMulti: Bool) {
        var path = levels(filter)
        let isMulti = path.last == .multi
        if isMulti { path.removeLast() }
        return (path, isMulti)
    }

    private func child(of index: Int, _ level: Level) -> Int? {
        level == .single ? nodes[index].single : nodes[index].children[level]
    }

    private mutating func insert(_ value: Value, _ filter: String) {
        let (path, isMulti) = Self.split(filter)
        var index = 0
        for level in path {
            if let next = child(of: index, level) {
                index = next
                continue
            }
            let node = Node(parent: index, level: level)
            let next: Int
            if let reused = free.popLast() {
                next = reused
                nodes[reused] = node
            } else {
                next = nodes.count
                nodes.append(node)
            }
            if level == .single {
                nodes[index].single = next
            } else {
                nodes[index].children[level] = next
            }
            index = next
        }
        let old = isMulti ? nodes[index].multi : nodes[index].value
        if old == nil { wildcardCount += 1 }
        if isMulti { nodes[index].multi = value } else { nodes[index].value = value }
    }

    private mutating func remove(_ filter: String) {
        let (path, isMulti) = Self.split(filter)
        var index = 0
        for level in path {
            guard let next = child(of: index, level) else { return }
            index = next
        }
        if isMulti { nodes[index].multi = nil } else { nodes[index].value = nil }
        wildcardCount -= 1
        while index != 0, nodes[index].isUnused {
            let (parent, level) = (nodes[index].parent, nodes[index].level)
            if level == .single {
                nodes[parent].single = nil
            } else {
                nodes[parent].children[level] = nil
            }
            free.append(index)
            index = parent
        }
    }
}
