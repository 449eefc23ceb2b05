import STOMPWire
import WireCore

/// A message as STOMP clients get it.
struct LoopbackMessage: Sendable {
    /// Set when a queue takes it.
    var number: UInt64 = 0
    let destination: String
    /// What its sender says beside it.
    let headers: STOMPHeaders
    let body: [UInt8]
    /// Whether a subscriber had it before and did not take it.
    var isRedelivered = false

    init(destination: String, headers: STOMPHeaders, body: [UInt8]) {
        self.destination = destination
        self.headers = headers
        self.body = body
    }

    /// Whether each of its messages goes to one subscriber, and waits for one.
    static func isQueue(_ destination: String) -> Bool { destination.hasBytePrefix("/queue/") }

    /// What is passed on of the headers of a SEND, in order.
    static func forwarded(_ headers: STOMPHeaders) -> STOMPHeaders {
        let own = [
            STOMPHeaderName.destination, STOMPHeaderName.contentLength, STOMPHeaderName.receipt,
            STOMPHeaderName.transaction, STOMPHeaderName.messageID, STOMPHeaderName.subscription,
            STOMPHeaderName.ack, "redelivered",
        ]
        return STOMPHeaders(
            headers.fields.filter { !own.contains(where: $0.name.hasSameBytes(as:)) }
        )
    }
}

/// A message on its way to a subscription.
struct LoopbackDelivery: Sendable {
    let client: UInt64
    let headers: STOMPHeaders
    let body: [UInt8]
}

/// What can be part of a transaction.
enum LoopbackStep: Sendable {
    case send(LoopbackMessage)
    case settle(STOMPAcknowledgement, isAccepted: Bool)
}

/// Why a request cannot be done.
enum LoopbackFault: Error {
    case subscriptionRefused, queueFull, messageUnknown

    var message: String {
        switch self {
        case .subscriptionRefused: "Subscription refused"
        case .queueFull: "The queue is full"
        case .messageUnknown: "No such message waits to be acknowledged"
        }
    }
}

/// Who gets what over STOMP: topics, queues, what awaits acknowledgement, and open transactions.
struct LoopbackDestinations: Sendable {
    struct Key: Hashable, Sendable {
        let client: UInt64
        let id: WireName

        init(client: UInt64, id: String) {
            self.client = client
            self.id = WireName(id)
        }
    }

    private struct Subscription: Sendable {
        let destination: String
        let ackMode: STOMPAckMode
        let version: STOMPVersion
        /// What was sent and not acknowledged, by the name that acknowledges it, in order.
        var pending: [(name: String, message: LoopbackMessage)] = []
    }

    private let queueLimit: Int
    private var subscriptions: [Key: Subscription] = [:]
    /// The subscriptions of a client, in order.
    private var keys: [UInt64: [Key]] = [:]
    /// The subscriptions of a destination, in order.
    private var listeners: [WireName: [Key]] = [:]
    private var queues: [WireName: ArraySlice<LoopbackMessage>] = [:]
    private var transactions: [Key: [LoopbackStep]] = [:]
    private var turn = 0
    private var lastNumber: UInt64 = 0

    init(queueLimit: Int) {
        self.queueLimit = max(queueLimit, 1)
    }

    // MARK: Subscriptions

    /// Adds a subscription.
    /// - Returns: What waited for one.
    mutating func subscribe(
        _ id: String,
        _ destination: String,
        _ ackMode: STOMPAckMode,
        _ version: STOMPVersion,
        _ client: UInt64
    ) -> [LoopbackDelivery] {
        let key = Key(client: client, id: id)
        subscriptions[key] = Subscription(
            destination: destination,
            ackMode: ackMode,
            version: version
        )
        keys[client, default: []].append(key)
        listeners[WireName(destination), default: []].append(key)
        return dispatch(destination)
    }

    /// Removes a subscription; what it has not acknowledged goes to others.
    mutating func unsubscribe(_ id: String, _ client: UInt64) -> [LoopbackDelivery] {
        let key = Key(client: client, id: id)
        guard let gone = subscriptions.removeValue(forKey: key) else { return [] }
        keys[client]?.removeAll { $0 == key }
        let rest = (listeners[gone.destination] ?? []).filter { $0 != key }
        listeners[gone.destination] = rest.isEmpty ? nil : rest
        return takeBack(gone.pending.map(\.message), gone.destination)
    }

    /// Removes everything of a client.
    mutating func remove(_ client: UInt64) -> [LoopbackDelivery] {
        for key in transactions.keys where key.client == client { transactions[key] = nil }
        // All listeners go first, lest a message travel from one subscription of the client to another.
        var gone: [Subscription] = []
        for key in keys.removeValue(forKey: client) ?? [] {
            guard let subscription = subscriptions.removeValue(forKey: key) else { continue }
            listeners[subscription.destination]?.removeAll { $0 == key }
            gone.append(subscription)
        }
        return gone.flatMap { takeBack($0.pending.map(\.message), $0.destination) }
    }

    // MARK: Messages

    /// Takes a message in.
    /// - Returns: Who gets it now.
    mutating func send(_ message: LoopbackMessage) throws(LoopbackFault) -> [LoopbackDelivery] {
        var message = message
        lastNumber += 1
        message.number = lastNumber
        guard LoopbackMessage.isQueue(message.destination) else {
            return (listeners[message.destination] ?? []).compactMap { deliver(message, to: $0) }
        }
        let name = WireName(message.destination)
        guard queues[name, default: []].count < queueLimit else { throw .queueFull }
        queues[name, default: []].append(message)
        return dispatch(message.destination)
    }

    /// Hands out what waits in a queue, to one subscriber after another.
    private mutating func dispatch(_ destination: String) -> [LoopbackDelivery] {
        guard let keys = listeners[destination], !keys.isEmpty,
            var waiting = queues.removeValue(forKey: WireName(destination))
        else { return [] }
        var deliveries: [LoopbackDelivery] = []
        while let message = waiting.popFirst() {
            turn += 1
            if let delivery = deliver(message, to: keys[turn % keys.count]) {
                deliveries.append(delivery)
            }
        }
        return deliveries
    }

    /// Puts messages back in their old order, to be delivered again; topics have no second chance.
    private mutating func takeBack(
        _ messages: [LoopbackMessage],
        _ destination: String
    ) -> [LoopbackDelivery] {
        guard LoopbackMessage.isQueue(destination), !messages.isEmpty else { return [] }
        let again = messages.map { message in
            var message = message
            message.isRedelivered = true
            return message
        }
        let waiting = (queues[destination] ?? []) + again
        queues[destination] = waiting.sorted { $0.number < $1.number }[...]
        return dispatch(destination)
    }

    private mutating func deliver(_ message: LoopbackMessage, to key: Key) -> LoopbackDelivery? {
        guard let subscription = subscriptions[key] else { return nil }
        var headers: STOMPHeaders = [
            STOMPHeaderName.subscription: key.id.text,
            STOMPHeaderName.messageID: String(message.number),
            STOMPHeaderName.destination: message.destination,
        ]
        if subscription.ackMode != .auto {
            // Of its own for each subscription, so that a topic's copies are told apart.
            let isByAck = subscription.version == .v1_2
            let name = isByAck ? "\(key.id.text)/\(message.number)" : String(message.number)
            if isByAck { headers.append(STOMPHeaderName.ack, name) }
            subscriptions[key]?.pending.append((name, message))
        }
        if message.isRedelivered { headers.append("redelivered", "true") }
        headers.append(message.headers)
        return LoopbackDelivery(client: key.client, headers: headers, body: message.body)
    }

    // MARK: Acknowledging

    /// Which message an acknowledgement is about.
    func find(
        _ acknowledgement: STOMPAcknowledgement,
        _ client: UInt64
    ) throws(LoopbackFault) -> (key: Key, index: Int) {
        for key in keys[client] ?? [] {
            guard let subscription = subscriptions[key] else { continue }
            if let id = acknowledgement.subscriptionID, WireName(id) != key.id { continue }
            let index = subscription.pending.firstIndex {
                $0.name.hasSameBytes(as: acknowledgement.identifier)
            }
            if let index { return (key, index) }
        }
        throw .messageUnknown
    }

    /// Settles a message, or in the mode `client` all up to it.
    /// - Returns: What is delivered again, as it was refused.
    mutating func settle(
        _ acknowledgement: STOMPAcknowledgement,
        isAccepted: Bool,
        _ client: UInt64
    ) throws(LoopbackFault) -> [LoopbackDelivery] {
        let (key, index) = try find(acknowledgement, client)
        guard var subscription = subscriptions[key] else { throw .messageUnknown }
        let first = subscription.ackMode == .client ? 0 : index
        let settled = subscription.pending[first...index].map(\.message)
        subscription.pending.removeSubrange(first...index)
        subscriptions[key] = subscription
        return isAccepted ? [] : takeBack(settled, subscription.destination)
    }

    // MARK: Transactions

    mutating func begin(_ transaction: String, _ client: UInt64) {
        transactions[Key(client: client, id: transaction)] = []
    }

    /// Keeps a step for later.
    mutating func keep(_ step: LoopbackStep, in transaction: String, _ client: UInt64) {
        transactions[Key(client: client, id: transaction)]?.append(step)
    }

    /// Ends a transaction.
    /// - Returns: What was kept.
    mutating func end(_ transaction: String, _ client: UInt64) -> [LoopbackStep] {
        transactions.removeValue(forKey: Key(client: client, id: transaction)) ?? []
    }
}
