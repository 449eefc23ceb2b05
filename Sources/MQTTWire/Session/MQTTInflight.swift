package import WireCore

/// Whoever waits for the outcome of a request: the core keeps it and gives it back with the outcome.
package protocol MQTTCall: AnyObject, Sendable {}

/// An application message on its way to the peer.
package struct MQTTOutgoingMessage: Sendable {
    /// Topic name, quality of service, retain flag and properties; its own payload stays empty.
    package var publish: MQTTPublish
    /// What the application wants to send, kept until the peer has taken it over.
    package var payload: any WireBytes

    package init(publish: MQTTPublish, payload: any WireBytes) {
        self.publish = publish
        self.payload = payload
    }
}

/// What was sent and is not yet acknowledged, by packet identifier.
///
/// One table for PUBLISH, SUBSCRIBE and UNSUBSCRIBE, since they share the identifiers (MQTT 5, 2.2.1).
/// An identifier's place is its low bits, and an identifier is given out only if its place is free: so
/// finding, adding and removing take constant time without hashing or searching.
package struct MQTTInflight: Sendable {
    /// What an identifier waits for.
    package enum Exchange: Sendable {
        /// QoS 1: PUBACK ends it.
        case publishAtLeastOnce(MQTTOutgoingMessage)
        /// QoS 2: PUBREC comes first.
        case publishExactlyOnce(MQTTOutgoingMessage)
        /// QoS 2: PUBREL was sent, PUBCOMP ends it. The order is that of the PUBRECs.
        case release(order: UInt64)
        /// SUBACK with that many codes ends it.
        case subscribe(count: Int)
        /// UNSUBACK, in MQTT 5 with that many codes, ends it.
        case unsubscribe(count: Int)
    }

    /// One exchange under way.
    package struct Entry: Sendable {
        package let packetIdentifier: UInt16
        package var exchange: Exchange
        /// Who waits; nil when nobody does any longer.
        package var call: (any MQTTCall)?
        /// When the caller has waited long enough.
        package var deadline: WireInstant
        /// The order of sending.
        package let sequence: UInt64
        /// Whether it was started on this connection, or its PUBLISH sent again: only then does a
        /// message take a place in the window (MQTT 5, 4.9).
        package var isOfThisConnection = true

        /// When the caller's time is up; nil when nobody waits.
        package var callerDeadline: WireInstant? { call == nil ? nil : deadline }

        /// The message, while it may have to be sent again.
        package var message: MQTTOutgoingMessage? {
            switch exchange {
            case .publishAtLeastOnce(let message), .publishExactlyOnce(let message): message
            case .release, .subscribe, .unsubscribe: nil
            }
        }
    }

    private var places: [Entry?]
    private var lastIdentifier: UInt16 = 0
    private var lastSequence: UInt64 = 0

    /// The number of exchanges under way.
    package private(set) var count = 0

    package init() {
        // As few as an idle connection needs, at some 150 bytes each: they double as they fill.
        places = [nil]
    }

    /// The entry of an identifier.
    package func entry(_ packetIdentifier: UInt16) -> Entry? {
        let place = place(of: packetIdentifier)
        guard let entry = places[place], entry.packetIdentifier == packetIdentifier else {
            return nil
        }
        return entry
    }

    /// All entries, in the order of sending.
    package var entries: [Entry] {
        places.compactMap { $0 }.sorted { $0.sequence < $1.sequence }
    }

    /// Starts an exchange under a free identifier.
    /// - Returns: The identifier, or nil when all 65,535 are in use.
    package mutating func begin(
        _ exchange: Exchange,
        call: (any MQTTCall)?,
        deadline: WireInstant
    ) -> UInt16? {
        guard let identifier = nextIdentifier() else { return nil }
        lastSequence += 1
        places[place(of: identifier)] = Entry(
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
        let place = place(of: packetIdentifier)
        guard let entry = places[place], entry.packetIdentifier == packetIdentifier else {
            return nil
        }
        places[place] = nil
        count -= 1
        return entry
    }

    /// Moves a QoS 2 exchange from PUBREC to PUBCOMP and drops its message (MQTT 5, 4.3.3).
    package mutating func release(_ packetIdentifier: UInt16) {
        let place = place(of: packetIdentifier)
        guard places[place]?.packetIdentifier == packetIdentifier else { return }
        lastSequence += 1
        places[place]?.exchange = .release(order: lastSequence)
    }

    /// Ends what belongs to one connection only: SUBSCRIBE and UNSUBSCRIBE (MQTT 5, 4.1).
    /// - Returns: Those exchanges, in the order of sending.
    package mutating func endConnection() -> [Entry] {
        var requests: [Entry] = []
        for index in places.indices {
            guard let entry = places[index] else { continue }
            switch entry.exchange {
            case .publishAtLeastOnce, .publishExactlyOnce, .release:
                places[index]?.isOfThisConnection = false
            case .subscribe, .unsubscribe:
                requests.append(entry)
                places[index] = nil
                count -= 1
            }
        }
        return requests.sorted { $0.sequence < $1.sequence }
    }

    /// Notes that a PUBLISH of an earlier connection was sent again.
    package mutating func noteRepeated(_ packetIdentifier: UInt16) {
        let place = place(of: packetIdentifier)
        guard places[place]?.packetIdentifier == packetIdentifier else { return }
        places[place]?.isOfThisConnection = true
    }

    /// Whether an exchange can begin.
    package var hasIdentifierLeft: Bool { count < 65_535 }

    /// Takes the callers whose time is up; their exchanges go on without them.
    /// - Returns: The callers in the order of sending, and when the next one's time is up.
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

    /// Forgets a caller; its exchange goes on without it.
    /// - Complexity: O(exchanges under way).
    package mutating func forget(_ call: any MQTTCall) {
        for index in places.indices where places[index]?.call === call {
            places[index]?.call = nil
        }
    }

    private func place(of identifier: UInt16) -> Int {
        Int(identifier) & (places.count - 1)
    }

    /// The next identifier in turn whose place is free; zero is none (MQTT 5, 2.2.1-3).
    private mutating func nextIdentifier() -> UInt16? {
        if count * 2 >= places.count, places.count < 65_536 { grow() }
        guard hasIdentifierLeft else { return nil }
        repeat {
            lastIdentifier = lastIdentifier == .max ? 1 : lastIdentifier + 1
        } while places[place(of: lastIdentifier)] != nil
        return lastIdentifier
    }

    private mutating func grow() {
        let old = places
        places = Array(repeating: nil, count: old.count * 2)
        // Identifiers that differ in few bits differ in more: no two meet in the larger table.
        for case let entry? in old { places[place(of: entry.packetIdentifier)] = entry }
    }
}
