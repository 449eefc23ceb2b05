package import WireCore

/// The exchanges without an acknowledgement, by packet identifier.
///
/// PUBLISH, SUBSCRIBE and UNSUBSCRIBE share one table, because they share the identifiers (MQTT 5, 2.2.1). The low bits
/// of an identifier are its place, and an identifier is used only if its place is free. Finding, adding and removing
/// therefore take constant time without hashing or searching.
///
/// The identifiers of stored messages are not chosen, so they have a dictionary. In the table, one of them and an
/// identifier with the same low bits would need a place for each of the 65,535 identifiers.
package struct MQTTInflight: Sendable {
    /// The state of an exchange: the packet that it waits for.
    package enum Exchange: Sendable {
        /// QoS 1: PUBACK ends it.
        case publishAtLeastOnce(MQTTOutgoingMessage)
        /// QoS 2: PUBREC is expected first.
        case publishExactlyOnce(MQTTOutgoingMessage)
        /// QoS 2: PUBREL was sent, PUBCOMP ends it; `order` is the order of the PUBRECs.
        case release(order: UInt64, storedNumber: UInt64? = nil)
        /// The message has failed, because the server ends the connections on which it is sent.
        ///
        /// It is not sent again. The identifier stays in use, because the server may have stored it.
        case rejected(MQTTQoS)
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
        /// The time limit of the call while the message is not with the server's socket
        /// (``MQTTOutgoingMessage/lastsUntil``).
        package var lastsUntil: WireInstant?
        /// The order of sending.
        package let sequence: UInt64
        /// Whether it was started or its PUBLISH resent on this connection; only then does a message count in the
        /// window (MQTT 5, 4.9).
        package var isOfThisConnection = true

        /// The server has the message: its expiry ends nothing any more.
        fileprivate mutating func noteReleased() {
            if lastsUntil != nil { lastsUntil = WireInstant(nanoseconds: .max) }
        }

        /// Notes that the connection is over.
        fileprivate mutating func noteEndOfConnection() {
            isOfThisConnection = false
            deadline = lastsUntil ?? deadline
        }

        /// The time limit of the call; nil if no call waits.
        package var callerDeadline: WireInstant? { call == nil ? nil : deadline }

        /// The message, while it may have to be resent.
        package var message: MQTTOutgoingMessage? {
            switch exchange {
            case .publishAtLeastOnce(let message), .publishExactlyOnce(let message): message
            case .release, .rejected, .subscribe, .unsubscribe: nil
            }
        }
    }

    /// What an exchange waits for, without its message.
    package enum Kind: Sendable {
        case publishAtLeastOnce, publishExactlyOnce, release, subscribe, unsubscribe
        case rejectedAtLeastOnce, rejectedExactlyOnce
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
    /// The exchanges with reserved identifiers.
    private var reserved: [UInt16: Entry] = [:]
    /// The identifiers of stored messages that wait outside of the session: the server may have their exchanges.
    private var kept: Set<UInt16> = []
    private var lastIdentifier: UInt16 = 0
    /// The last identifier that an exchange may choose; those from ``firstReserved`` on may belong to stored messages.
    private let lastFree: UInt16
    /// The number of exchanges of rejected messages.
    package private(set) var rejectedCount: UInt16 = 0
    /// As many as there are identifiers at most.
    private var openCount: UInt16 = 0
    private var lastSequence: UInt64 = 0

    /// The number of open exchanges, with those of rejected messages.
    package var count: Int { Int(openCount) }

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
        guard !isReserved(packetIdentifier) else { return reserved[packetIdentifier] }
        return key(packetIdentifier) == nil ? nil : places[place(of: packetIdentifier)]
    }

    /// What the exchange waits for; nil if there is none.
    package func kind(_ packetIdentifier: UInt16) -> Kind? {
        guard !isReserved(packetIdentifier) else {
            return reserved[packetIdentifier]?.exchange.kind
        }
        return key(packetIdentifier)?.kind
    }

    /// Whether the exchange was started, or its PUBLISH resent, on this connection; nil if there is none.
    package func isOfThisConnection(_ packetIdentifier: UInt16) -> Bool? {
        guard !isReserved(packetIdentifier) else {
            return reserved[packetIdentifier]?.isOfThisConnection
        }
        return key(packetIdentifier)?.isOfThisConnection
    }

    private func isReserved(_ packetIdentifier: UInt16) -> Bool { packetIdentifier > lastFree }

    private func key(_ packetIdentifier: UInt16) -> Key? {
        guard let key = keys[place(of: packetIdentifier)], key.packetIdentifier == packetIdentifier
        else { return nil }
        return key
    }

    /// All entries, in the order of sending.
    package var entries: [Entry] {
        (places.compactMap { $0 } + reserved.values).sorted { $0.sequence < $1.sequence }
    }

    /// Whether half of the identifiers are kept for stored messages.
    package var reservesIdentifiers: Bool { lastFree != .max }

    /// The size of the table.
    package var placeCount: Int { places.count }

    /// Starts an exchange with a free identifier.
    ///
    /// - Parameters:
    ///   - exchange: The exchange.
    ///   - stored: The identifier of a stored message, if such identifiers are reserved; nil for any that is free.
    ///   - call: The waiting call.
    ///   - deadline: The time limit of the call.
    /// - Returns: The identifier, or nil when it is in use, or when all of them are.
    package mutating func begin(
        _ exchange: Exchange,
        as stored: UInt16? = nil,
        call: (any MQTTCall)?,
        deadline: WireInstant
    ) -> UInt16? {
        guard canBegin(as: stored) else { return nil }
        let identifier = stored.flatMap { isFree($0) ? $0 : nil } ?? nextIdentifier()
        lastSequence += 1
        var entry = Entry(
            packetIdentifier: identifier,
            exchange: exchange,
            call: call,
            deadline: deadline,
            sequence: lastSequence
        )
        entry.lastsUntil = entry.message?.lastsUntil
        openCount += 1
        guard !isReserved(identifier) else {
            reserved[identifier] = entry
            return identifier
        }
        let place = place(of: identifier)
        keys[place] = Key(
            packetIdentifier: identifier,
            kind: exchange.kind,
            isOfThisConnection: true
        )
        places[place] = entry
        return identifier
    }

    /// Ends an exchange and frees its identifier.
    @discardableResult
    package mutating func end(_ packetIdentifier: UInt16) -> Entry? {
        guard !isReserved(packetIdentifier) else {
            guard let entry = reserved.removeValue(forKey: packetIdentifier) else { return nil }
            openCount -= 1
            if case .rejected = entry.exchange { rejectedCount -= 1 }
            return entry
        }
        guard let key = key(packetIdentifier) else { return nil }
        let place = place(of: packetIdentifier)
        if key.kind.isRejected { rejectedCount -= 1 }
        keys[place] = nil
        openCount -= 1
        return places[place].take()
    }

    /// Moves a QoS 2 exchange from PUBREC to PUBCOMP and drops its message (MQTT 5, 4.3.3).
    package mutating func release(_ packetIdentifier: UInt16) {
        lastSequence += 1
        if kind(packetIdentifier)?.isRejected == true { rejectedCount -= 1 }
        guard !isReserved(packetIdentifier) else {
            let number = reserved[packetIdentifier]?.message?.storedNumber
            reserved[packetIdentifier]?.exchange = .release(
                order: lastSequence,
                storedNumber: number
            )
            reserved[packetIdentifier]?.noteReleased()
            return
        }
        guard key(packetIdentifier) != nil else { return }
        let place = place(of: packetIdentifier)
        keys[place]?.kind = .release
        places[place]?.exchange = .release(order: lastSequence)
        places[place]?.noteReleased()
    }

    /// Ends the exchanges that belong to one connection only: SUBSCRIBE and UNSUBSCRIBE (MQTT 5, 4.1), and messages
    /// that are sent once.
    ///
    /// The packet identifier of such a message is free again. A server keeps nothing of a message of QoS 1 that it has
    /// received, and sends its PUBACK only over the connection of the PUBLISH (4.3.2).
    ///
    /// - Returns: Those exchanges, in the order of sending.
    package mutating func endConnection() -> [Entry] {
        var requests: [Entry] = []
        for index in places.indices {
            guard let entry = places[index] else { continue }
            let isSentOnce = entry.message?.isSentOnce == true
            switch entry.exchange {
            case .publishAtLeastOnce where !isSentOnce, .publishExactlyOnce, .release, .rejected:
                keys[index]?.isOfThisConnection = false
                places[index]?.noteEndOfConnection()
            case .publishAtLeastOnce, .subscribe, .unsubscribe:
                requests.append(entry)
                keys[index] = nil
                places[index] = nil
                openCount -= 1
            }
        }
        for identifier in reserved.keys { reserved[identifier]?.noteEndOfConnection() }
        return requests.sorted { $0.sequence < $1.sequence }
    }

    /// Notes that a message was sent on an earlier connection, if at all.
    mutating func noteEarlier(_ identifier: UInt16) {
        setIsOfThisConnection(false, identifier)
    }

    /// Notes that a PUBLISH of an earlier connection was resent.
    package mutating func noteRepeated(_ packetIdentifier: UInt16) {
        setIsOfThisConnection(true, packetIdentifier)
    }

    private mutating func setIsOfThisConnection(_ isOfThisConnection: Bool, _ identifier: UInt16) {
        guard !isReserved(identifier) else {
            reserved[identifier]?.isOfThisConnection = isOfThisConnection
            return
        }
        guard key(identifier) != nil else { return }
        let place = place(of: identifier)
        keys[place]?.isOfThisConnection = isOfThisConnection
        places[place]?.isOfThisConnection = isOfThisConnection
    }

    /// Whether an exchange can begin.
    ///
    /// The identifier of a rejected message, or of one that waits outside of the session, may never be free. So another
    /// message does not wait for it, and gets any that is free.
    ///
    /// - Parameter stored: The identifier of a stored message; nil for any that is free.
    /// - Returns: False if that is in use, or if all are.
    package func canBegin(as stored: UInt16? = nil) -> Bool {
        if let stored, isFree(stored) { return true }
        if reservesIdentifiers, let stored, kind(stored)?.isRejected == false { return false }
        return count - reserved.count < Int(lastFree)
    }

    /// Whether a stored message can have its own identifier.
    func isFree(_ stored: UInt16) -> Bool {
        reservesIdentifiers && reserved[stored] == nil && !kept.contains(stored)
    }

    /// Keeps the identifiers of stored messages that wait outside of the session, and no others from now on.
    mutating func keep(_ identifiers: Set<UInt16>) { kept = identifiers }

    /// Notes what is known of a message at the end of a connection.
    ///
    /// - Returns: The message; nil if the exchange has none any more.
    mutating func note(
        _ suspicion: ReplaySuspicion.Record,
        of identifier: UInt16
    ) -> MQTTOutgoingMessage? {
        guard let entry = entry(identifier), var message = entry.message else { return nil }
        message.suspicion = suspicion
        if case .publishExactlyOnce = entry.exchange {
            change(identifier) { $0.exchange = .publishExactlyOnce(message) }
        } else {
            change(identifier) { $0.exchange = .publishAtLeastOnce(message) }
        }
        return message
    }

    /// Gives a message up; its identifier stays in use.
    ///
    /// - Returns: The exchange as it was; nil if it has no message any more.
    mutating func reject(_ identifier: UInt16) -> Entry? {
        guard let entry = entry(identifier), let message = entry.message else { return nil }
        change(identifier) { rejected in
            rejected.exchange = .rejected(message.publish.qos)
            rejected.call = nil
        }
        rejectedCount += 1
        return entry
    }

    private mutating func change(_ identifier: UInt16, _ body: (inout Entry) -> Void) {
        guard var entry = entry(identifier) else { return }
        body(&entry)
        guard !isReserved(identifier) else {
            reserved[identifier] = entry
            return
        }
        let place = place(of: identifier)
        keys[place]?.kind = entry.exchange.kind
        places[place] = entry
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
        for (identifier, entry) in reserved {
            guard let call = entry.call else { continue }
            if entry.deadline <= now {
                expired.append((entry.sequence, call))
                reserved[identifier]?.call = nil
            } else {
                next = min(next ?? entry.deadline, entry.deadline)
            }
        }
        return (expired.sorted { $0.0 < $1.0 }.map(\.1), next)
    }

    /// Gives the exchange of a stored message another call.
    ///
    /// - Returns: Whether there is such an exchange.
    mutating func adopt(_ storedNumber: UInt64, _ call: any MQTTCall) -> Bool {
        let identifier = MQTTOutgoingMessage.reservedIdentifier(storedNumber)
        guard let exchange = reserved[identifier]?.exchange else { return false }
        switch exchange {
        case .publishAtLeastOnce(let message), .publishExactlyOnce(let message):
            guard message.storedNumber == storedNumber else { return false }
        case .release(_, let number): guard number == storedNumber else { return false }
        case .rejected, .subscribe, .unsubscribe: return false
        }
        reserved[identifier]?.call = call
        reserved[identifier]?.deadline = WireInstant(nanoseconds: .max)
        reserved[identifier]?.lastsUntil = nil
        return true
    }

    /// Whether the time limit of a call begins when its packet is given to the socket.
    func isLasting(_ identifier: UInt16) -> Bool { entry(identifier)?.lastsUntil != nil }

    /// Notes that the packet of a call was given to the socket, if its time limit begins then.
    ///
    /// - Returns: Whether that is so.
    mutating func noteGiven(_ identifier: UInt16, until deadline: WireInstant) -> Bool {
        guard let entry = entry(identifier), entry.lastsUntil != nil, entry.call != nil,
            entry.isOfThisConnection || entry.message == nil
        else { return false }
        change(identifier) { $0.deadline = deadline }
        return true
    }

    /// Removes a call; its exchange continues without it.
    ///
    /// - Complexity: O(open exchanges).
    package mutating func forget(_ call: any MQTTCall) {
        for index in places.indices where places[index]?.call === call {
            places[index]?.call = nil
        }
        let identifiers = reserved.filter { $0.value.call === call }.keys
        for identifier in identifiers { reserved[identifier]?.call = nil }
    }

    private func place(of identifier: UInt16) -> Int {
        Int(identifier) & (places.count - 1)
    }

    /// Returns the next identifier with a free place; zero is not valid (MQTT 5, 2.2.1-3).
    ///
    /// Call ``canBegin(as:)`` first.
    private mutating func nextIdentifier() -> UInt16 {
        if (count - reserved.count) * 2 >= places.count, places.count < 65_536 { grow() }
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
        case .rejected(.exactlyOnce): .rejectedExactlyOnce
        case .rejected: .rejectedAtLeastOnce
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        }
    }
}

extension MQTTInflight.Kind {
    /// Whether the exchange is that of a rejected message.
    fileprivate var isRejected: Bool {
        self == .rejectedAtLeastOnce || self == .rejectedExactlyOnce
    }
}
