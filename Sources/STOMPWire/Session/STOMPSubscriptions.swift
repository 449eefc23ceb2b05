import WireCore

/// The open subscriptions of a connection, by id.
package struct STOMPSubscriptions: Sendable {
    package struct Entry: Sendable {
        package let id: String
        package let destination: String
        package let ackMode: STOMPAckMode
        /// Whether a caller has chosen the id, and may choose it again.
        package let isChosen: Bool
        /// The number of the subscription on the connection, from 1.
        package fileprivate(set) var generation: UInt64 = 0

        package init(
            id: String,
            destination: String,
            ackMode: STOMPAckMode,
            isChosen: Bool = false
        ) {
            self.id = id
            self.destination = destination
            self.ackMode = ackMode
            self.isChosen = isChosen
        }
    }

    private var entries: [WireName: Entry] = [:]
    /// The subscription of the last message; the next message often has the same.
    private var last: Entry?
    private var lastGeneration: UInt64 = 0

    package init() {}

    /// The ids of the open subscriptions.
    package var ids: [String] { entries.keys.sorted().map(\.text) }

    /// The subscription of an id.
    package subscript(id: String) -> Entry? { entries[id] }

    package mutating func add(_ entry: Entry) {
        lastGeneration += 1
        var entry = entry
        entry.generation = lastGeneration
        entries[entry.id] = entry
    }

    package mutating func remove(_ id: String) {
        entries[id] = nil
        if let last, last.id.hasSameBytes(as: id) { self.last = nil }
    }

    /// The subscription of a message: found by id and not by destination, since two subscriptions may share one.
    ///
    /// A 1.0 server may omit the id; the first subscription with the destination is then used.
    package mutating func entry(for headers: STOMPReceivedHeaders) -> Entry? {
        if let last, headers.isEqual(headers.places.subscription, last.id) { return last }
        let found: Entry?
        if let id = headers.subscription {
            found = entries[id]
            last = found
        } else {
            found = entries.values.filter {
                headers.isEqual(headers.places.destination, $0.destination)
            }.min { WireName($0.id) < WireName($1.id) }
        }
        return found
    }
}
