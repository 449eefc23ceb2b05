import WireCore

/// The subscriptions that are open on a connection, by their id.
package struct STOMPSubscriptions: Sendable {
    /// One subscription.
    package struct Entry: Sendable {
        package let id: String
        package let destination: String
        package let ackMode: STOMPAckMode

        package init(id: String, destination: String, ackMode: STOMPAckMode) {
            self.id = id
            self.destination = destination
            self.ackMode = ackMode
        }
    }

    private var entries: [WireName: Entry] = [:]
    /// The one that had the last message, which often has the next one, too.
    private var last: Entry?

    package init() {}

    /// The ids that are open.
    package var ids: [String] { entries.keys.sorted().map(\.text) }

    /// The subscription of an id.
    package subscript(id: String) -> Entry? { entries[id] }

    package mutating func add(_ entry: Entry) {
        entries[entry.id] = entry
    }

    package mutating func remove(_ id: String) {
        entries[id] = nil
        if let last, last.id.hasSameBytes(as: id) { self.last = nil }
    }

    /// The subscription that a message belongs to: by id, not by destination, since two may share one.
    ///
    /// A 1.0 server may leave the id out; then it is the first one with that destination.
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
