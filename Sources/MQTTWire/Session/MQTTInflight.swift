package import WireCore

/// A call that waits for the outcome of a request; the core stores it and returns it with the outcome.
package protocol MQTTCall: AnyObject, Sendable {}

/// An application message on its way to the peer.
package struct MQTTOutgoingMessage: Sendable {
    /// Topic name, quality of service, retain flag and properties; its own payload is empty.
    package var publish: MQTTPublish
    /// The payload, kept until the peer has accepted the message.
    package var payload: any WireBytes
    /// The number of the message in a store that keeps the exchanges; nil without one.
    ///
    /// The message's packet identifier follows from it, so that a later process knows the identifier. The stage of the
    /// exchange is stored before PUBREL is sent (``MQTTStorageStep``).
    package var storedNumber: UInt64?

    package init(publish: MQTTPublish, payload: any WireBytes, storedNumber: UInt64? = nil) {
        self.publish = publish
        self.payload = payload
        self.storedNumber = storedNumber
    }

    /// The packet identifier of a stored message; nil for a message with any free identifier.
    var reservedIdentifier: UInt16? {
        storedNumber.map { UInt16(truncatingIfNeeded: $0) | MQTTInflight.firstReserved }
    }
}

/// The exchanges without an acknowledgement, by packet identifier.
///
/// PUBLISH, SUBSCRIBE and UNSUBSCRIBE share one table, because they share the identifiers (MQTT 5, 2.2.1). The low bits
/// of an identifier are its place, and an identifier is used only if its place is free. Finding, adding and removing
/// therefore take constant time without hashing or searching.
package struct MQTTInflight: Sendable {
    /// The state of an exchange: the packet that it waits for.
    package enum Exchange: Sendable {
        /// QoS 1: PUBACK ends it.
        case publishAtLeastOnce(MQTTOutgoingMessage)
        /// QoS 2: PUBREC is expected first.
        case publishExactlyOnce(MQTTOutgoingMessage)
        /// QoS 2: PUBREL was sent, PUBCOMP ends it; `order` is the order of the PUBRECs.
        case release(order: UInt64)
        /// SUBACK with `count` codes ends it.
        case subscribe(count: Int)
        /// UNSUBACK, in MQTT 5 with `count` codes, ends it.
        case unsubscribe(count: Int)
    }

    /// An open exchange.
    package struct Entry: Sendable {
        package let packetIdentifier: UInt16
        package var exchange: Exchange
        /// The waiting call; nil if no call waits any more.
        package var call: (any MQTTCall)?
        /// The time limit of the call.
        package var deadline: WireInstant
        /// The order of sending.
        package let sequence: UInt64
        /// Whether it was started or its PUBLISH resent on this connection; only then does a message count in the
        /// window (MQTT 5, 4.9).
        package var isOfThisConnection = true

        /// The time limit of the call; nil if no call waits.
        package var callerDeadline: WireInstant? { call == nil ? nil : deadline }

        /// The message, while it may have to be resent.
        package var message: MQTTOutgoingMessage? {
            switch exchange {
            case .publishAtLeastOnce(let message), .publishExactlyOnce(let message): message
            case .release, .subscribe, .unsubscribe: nil
            }
        }
    }

    /// What an exchange waits for, without its message.
    package enum Kind: Sendable {
        case publishAtLeastOnce, publishExactlyOnce, release, subscribe, unsubscribe
    }

    /// What is asked about an entry for each packet.
    ///
    /// To read it counts no reference, as copying an entry would.
    private struct Key: Sendable {
        var packetIdentifier: UInt16
        var kind: Kind
        var isOfThisConnection: Bool
    }

    /// One for each place, nil where `places` has nil.
    private var keys: [Key?]
    private var places: [Entry?]
    private var lastIdentifier: UInt16 = 0
    /// The last identifier that an exchange may choose; those from ``firstReserved`` on may belong to stored messages.
    private let lastFree: UInt16
    private var lastSequence: UInt64 = 0

    /// The number of open exchanges.
    package private(set) var count = 0

    /// The first identifier of stored messages.
    static let firstReserved: UInt16 = 0x8000

    /// - Parameter reservesIdentifiers: Whether half of the identifiers are kept for stored messages.
    package init(reservesIdentifiers: Bool = false) {
        lastFree = reservesIdentifiers ? Self.firstReserved - 1 : .max
        // As few as an idle connection needs, at about 150 bytes each; the table doubles as it fills.
        places = [nil]
        keys = [nil]
    }

    package func entry(_ packetIdentifier: UInt16) -> Entry? {
        key(packetIdentifier) == nil ? nil : places[place(of: packetIdentifier)]
    }

    /// What the exchange waits for; nil if there is none.
    package func kind(_ packetIdentifier: UInt16) -> Kind? { key(packetIdentifier)?.kind }

    /// Whether the exchange was started, or its PUBLISH resent, on this connection; nil if there is none.
    package func isOfThisConnection(_ packetIdentifier: UInt16) -> Bool? {
        key(packetIdentifier)?.isOfThisConnection
    }

    private func key(_ packetIdentifier: UInt16) -> Key? {
        guard let key = keys[place(of: packetIdentifier)], key.packetIdentifier == packetIdentifier
        else { return nil }
        return key
    }

    /// All entries, in the order of sending.
    package var entries: [Entry] {
        places.compactMap { $0 }.sorted { $0.sequence < $1.sequence }
    }

    /// Whether half of the identifiers are kept for stored messages.
    package var reservesIdentifiers: Bool { lastFree != .max }

    /// Starts an exchange with a free identifier.
    ///
    /// - Parameters:
    ///   - exchange: The exchange.
    ///   - reserved: The identifier; nil for any that is free.
    ///   - call: The waiting call.
    ///   - deadline: The time limit of the call.
    /// - Returns: The identifier, or nil when it is in use, or when all of them are.
    package mutating func begin(
        _ exchange: Exchange,
        as reserved: UInt16? = nil,
        call: (any MQTTCall)?,
        deadline: WireInstant
    ) -> UInt16? {
        guard let identifier = reserved.map({ claim($0) }) ?? nextIdentifier() else { return nil }
        lastSequence += 1
        let place = place(of: identifier)
        keys[place] = Key(
            packetIdentifier: identifier,
            kind: exchange.kind,
            isOfThisConnection: true
        )
        places[place] = Entry(
            packetIdentifier: identifier,
            exchange: exchange,
            call: call,
            deadline: deadline,
            sequence: lastSequence
        )
        count += 1
        return identifier
    }

    /// Ends an exchange and frees its identifier.
    @discardableResult
    package mutating func end(_ packetIdentifier: UInt16) -> Entry? {
        guard key(packetIdentifier) != nil else { return nil }
        let place = place(of: packetIdentifier)
        keys[place] = nil
        count -= 1
        return places[place].take()
    }

    /// Moves a QoS 2 exchange from PUBREC to PUBCOMP and drops its message (MQTT 5, 4.3.3).
    package mutating func release(_ packetIdentifier: UInt16) {
        guard key(packetIdentifier) != nil else { return }
        let place = place(of: packetIdentifier)
        lastSequence += 1
        keys[place]?.kind = .release
        places[place]?.exchange = .release(order: lastSequence)
    }

    /// Ends the exchanges that belong to one connection only: SUBSCRIBE and UNSUBSCRIBE (MQTT 5, 4.1).
    ///
    /// - Returns: Those exchanges, in the order of sending.
    package mutating func endConnection() -> [Entry] {
        var requests: [Entry] = []
        for index in places.indices {
            guard let entry = places[index] else { continue }
            switch entry.exchange {
            case .publishAtLeastOnce, .publishExactlyOnce, .release:
                keys[index]?.isOfThisConnection = false
                places[index]?.isOfThisConnection = false
            case .subscribe, .unsubscribe:
                requests.append(entry)
                keys[index] = nil
                places[index] = nil
                count -= 1
            }
        }
        return requests.sorted { $0.sequence < $1.sequence }
    }

    /// Notes that a message was sent on an earlier connection, if at all.
    mutating func noteEarlier(_ identifier: UInt16) {
        guard key(identifier) != nil else { return }
        let place = place(of: identifier)
        keys[place]?.isOfThisConnection = false
        places[place]?.isOfThisConnection = false
    }

    /// Notes that a PUBLISH of an earlier connection was resent.
    package mutating func noteRepeated(_ packetIdentifier: UInt16) {
        guard key(packetIdentifier) != nil else { return }
        let place = place(of: packetIdentifier)
        keys[place]?.isOfThisConnection = true
        places[place]?.isOfThisConnection = true
    }

    /// Whether an exchange can begin.
    ///
    /// - Parameter reserved: Its identifier; nil for any that is free.
    /// - Returns: False if that is in use, or if all are.
    package func canBegin(as reserved: UInt16? = nil) -> Bool {
        if let reserved { return key(reserved) == nil }
        return count < Int(lastFree)
    }

    /// Takes the calls whose time limit has passed; their exchanges continue without them.
    ///
    /// - Returns: The calls in the order of sending, and the next time limit.
    package mutating func takeExpired(
        at now: WireInstant
    ) -> (expired: [any MQTTCall], next: WireInstant?) {
        var expired: [(UInt64, any MQTTCall)] = []
        var next: WireInstant?
        for index in places.indices {
            guard let entry = places[index], let call = entry.call else { continue }
            if entry.deadline <= now {
                expired.append((entry.sequence, call))
                places[index]?.call = nil
            } else {
                next = min(next ?? entry.deadline, entry.deadline)
            }
        }
        return (expired.sorted { $0.0 < $1.0 }.map(\.1), next)
    }

    /// Removes a call; its exchange continues without it.
    ///
    /// - Complexity: O(open exchanges).
    package mutating func forget(_ call: any MQTTCall) {
        for index in places.indices where places[index]?.call === call {
            places[index]?.call = nil
        }
    }

    private func place(of identifier: UInt16) -> Int {
        Int(identifier) & (places.count - 1)
    }

    /// Makes a place for an identifier, unless it is in use.
    private mutating func claim(_ identifier: UInt16) -> UInt16? {
        guard key(identifier) == nil else { return nil }
        // Another identifier has another place in a larger table, at the latest in one with all identifiers.
        while keys[place(of: identifier)] != nil, places.count < 65_536 { grow() }
        return identifier
    }

    /// Returns the next identifier with a free place; zero is not valid (MQTT 5, 2.2.1-3).
    private mutating func nextIdentifier() -> UInt16? {
        if count * 2 >= places.count, places.count < 65_536 { grow() }
        guard canBegin() else { return nil }
        repeat {
            lastIdentifier = lastIdentifier >= lastFree ? 1 : lastIdentifier + 1
        } while keys[place(of: lastIdentifier)] != nil
        return lastIdentifier
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: nil, count: old.count * 2)
        // Identifiers with different low bits keep different places in the larger table.
        for case let entry? in old { places[place(of: entry.packetIdentifier)] = entry }
        let oldKeys = keys
        keys = Array(repeating: nil, count: places.count)
        for case let key? in oldKeys { keys[place(of: key.packetIdentifier)] = key }
    }
}

extension MQTTInflight.Exchange {
    fileprivate var kind: MQTTInflight.Kind {
        switch self {
        case .publishAtLeastOnce: .publishAtLeastOnce
        case .publishExactlyOnce: .publishExactlyOnce
        case .release: .release
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        }
    }
}
