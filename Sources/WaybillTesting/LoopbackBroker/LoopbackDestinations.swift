import STOMPWire
import WireCore

/// The STOMP side of the broker: topics, queues, messages that await acknowledgement, and open transactions.
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
        /// The messages that are not acknowledged yet, in order, with the names that acknowledge them.
        var pending: [(name: String, message: LoopbackMessage)] = []
    }

    /// The messages that wait for a subscriber, in order.
    private struct Queue: Sendable {
        var messages: ArraySlice<LoopbackMessage> = []
        var byteCount = 0

        mutating func append(_ message: LoopbackMessage) {
            messages.append(message)
            byteCount += message.byteCount
        }
    }

    private let queueLimit: Int
    private let queueByteLimit: Int
    private var subscriptions: [Key: Subscription] = [:]
    /// The subscriptions of a client, in order.
    private var keys: [UInt64: [Key]] = [:]
    /// The subscriptions of a destination, in order.
    private var listeners: [WireName: [Key]] = [:]
    private var queues: [WireName: Queue] = [:]
    /// The destinations behind the temporary queues of connections.
    private var replyQueues: [Key: String] = [:]
    private var transactions: [Key: [LoopbackStep]] = [:]
    private var turn = 0
    private var lastNumber: UInt64 = 0
    private var lastReplyQueue: UInt64 = 0

    init(queueLimit: Int, queueByteLimit: Int) {
        self.queueLimit = max(queueLimit, 1)
        self.queueByteLimit = max(queueByteLimit, 1)
    }

    /// Forgets all subscriptions, messages and transactions.
    mutating func forget() {
        let (last, lastReplyQueue) = (lastNumber, lastReplyQueue)
        self = LoopbackDestinations(queueLimit: queueLimit, queueByteLimit: queueByteLimit)
        // An acknowledgement of before must not settle another message, nor an answer reach another client.
        lastNumber = last
        self.lastReplyQueue = lastReplyQueue
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
        var destination = destination
        if LoopbackMessage.isTemporary(destination) {
            let queue = Key(client: client, id: destination)
            // The one that the first SEND has made, if there was one before.
            _ = unsubscribe(destination, client)
            destination = replyQueue(queue)
        }
        return add(
            Key(client: client, id: id),
            Subscription(destination: destination, ackMode: ackMode, version: version)
        )
    }

    private mutating func add(_ key: Key, _ subscription: Subscription) -> [LoopbackDelivery] {
        let (client, destination) = (key.client, subscription.destination)
        subscriptions[key] = subscription
        keys[client, default: []].append(key)
        listeners[WireName(destination), default: []].append(key)
        return dispatch(destination)
    }

    /// The destination of a subscription.
    func destination(of id: String, _ client: UInt64) -> String? {
        subscriptions[Key(client: client, id: id)]?.destination
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

    /// Subscribes to the destination behind a temporary queue.
    ///
    /// The subscription has the name of the queue as its id, unless the client has one of its own.
    mutating func openReplyQueue(
        _ name: String,
        _ version: STOMPVersion,
        _ client: UInt64
    ) -> String {
        let key = Key(client: client, id: name)
        let destination = replyQueue(key)
        if (listeners[destination] ?? []).isEmpty {
            _ = add(
                key,
                Subscription(destination: destination, ackMode: .auto, version: version)
            )
        }
        return destination
    }

    /// A destination of its own for each connection, since several may use the same name.
    private mutating func replyQueue(_ key: Key) -> String {
        if let known = replyQueues[key] { return known }
        lastReplyQueue += 1
        let name = "/reply-queue/loopback-\(lastReplyQueue)"
        replyQueues[key] = name
        return name
    }

    /// Removes everything of a client.
    mutating func remove(_ client: UInt64) -> [LoopbackDelivery] {
        for key in transactions.keys where key.client == client { transactions[key] = nil }
        for key in replyQueues.keys where key.client == client { replyQueues[key] = nil }
        // All listeners go first, lest a message travel from one subscription of the client to another.
        var gone: [Subscription] = []
        for key in keys.removeValue(forKey: client) ?? [] {
            guard let subscription = subscriptions.removeValue(forKey: key) else { continue }
            listeners[subscription.destination]?.removeAll { $0 == key }
            gone.append(subscription)
        }
        // All messages go back before any is delivered again, lest they lose their order.
        for subscription in gone {
            putBack(subscription.pending.map(\.message), subscription.destination)
        }
        return gone.flatMap { dispatch($0.destination) }
    }

    // MARK: Messages

    /// Takes a message in.
    /// - Returns: Its deliveries now.
    mutating func send(_ message: LoopbackMessage) throws(LoopbackFault) -> [LoopbackDelivery] {
        var message = message
        lastNumber += 1
        message.number = lastNumber
        guard LoopbackMessage.isQueue(message.destination) else {
            return (listeners[message.destination] ?? []).compactMap { deliver(message, to: $0) }
        }
        let name = WireName(message.destination)
        let queue = queues[name] ?? Queue()
        guard queue.messages.count < queueLimit,
            queue.byteCount + message.byteCount <= queueByteLimit
        else { throw .queueFull }
        queues[name, default: Queue()].append(message)
        return dispatch(message.destination)
    }

    /// Hands out what waits in a queue, to one subscriber after another.
    private mutating func dispatch(_ destination: String) -> [LoopbackDelivery] {
        guard let keys = listeners[destination], !keys.isEmpty,
            var waiting = queues.removeValue(forKey: WireName(destination))
        else { return [] }
        var deliveries: [LoopbackDelivery] = []
        while let message = waiting.messages.popFirst() {
            turn += 1
            if let delivery = deliver(message, to: keys[turn % keys.count]) {
                deliveries.append(delivery)
            }
        }
        return deliveries
    }

    /// Delivers messages again.
    private mutating func takeBack(
        _ messages: [LoopbackMessage],
        _ destination: String
    ) -> [LoopbackDelivery] {
        putBack(messages, destination)
        return dispatch(destination)
    }

    /// Puts messages back into their places of the queue; topics have no second chance.
    private mutating func putBack(_ messages: [LoopbackMessage], _ destination: String) {
        guard LoopbackMessage.isQueue(destination), !messages.isEmpty else { return }
        let again = messages.map { message in
            var message = message
            message.isRedelivered = true
            return message
        }
        var queue = queues[destination] ?? Queue()
        queue.messages = (queue.messages + again).sorted { $0.number < $1.number }[...]
        queue.byteCount += again.reduce(0) { $0 + $1.byteCount }
        queues[destination] = queue
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

    // MARK: What is there

    /// The bytes of all messages: in queues, without an acknowledgement, in transactions.
    var byteCount: Int {
        let waiting = queues.values.reduce(0) { $0 + $1.byteCount }
        let pending = subscriptions.values.reduce(0) { sum, subscription in
            subscription.pending.reduce(sum) { $0 + $1.message.byteCount }
        }
        return transactions.values.reduce(waiting + pending) { sum, steps in
            steps.reduce(sum) { sum, step in
                if case .send(let message) = step { sum + message.byteCount } else { sum }
            }
        }
    }

    /// The messages that were delivered and not acknowledged, of a queue or topic.
    func unacknowledgedCount(_ destination: String) -> Int {
        subscriptions.values.reduce(0) { count, subscription in
            subscription.destination.hasSameBytes(as: destination)
                ? count + subscription.pending.count : count
        }
    }

    /// The messages that wait for a subscriber.
    func waitingCount(_ destination: String) -> Int { queues[destination]?.messages.count ?? 0 }

    /// True when no message waits to be acknowledged, and no transaction is open.
    var isIdle: Bool {
        transactions.isEmpty && subscriptions.values.allSatisfy(\.pending.isEmpty)
    }
}
