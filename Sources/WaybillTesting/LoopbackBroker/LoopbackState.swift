import MQTTWire
import WireCore

/// The state of the broker: its clients, its faults, and the sessions, queues and events of its services.
struct LoopbackState: Sendable {
    var faults = LoopbackFaults()
    /// MQTT: sessions, subscriptions, retained messages.
    var exchange: LoopbackExchange
    /// STOMP: topics, queues, transactions.
    var destinations: LoopbackDestinations
    var eventTopics: LoopbackEventTopics

    /// The authentication of MQTT clients.
    var authentications: [UInt64: LoopbackAuthenticating] = [:]

    /// The bytes of messages that the broker keeps at the most, of all services together.
    static let byteLimit = 64 << 20
    /// The bytes that were kept at the last count, and those of the messages that came since.
    private var byteCount = 0
    private var uncountedByteCount = 0

    private var members: [UInt64: LoopbackMember] = [:]
    private var lastClient: UInt64 = 0
    /// The last client of before a restart that has forgotten everything.
    private var lastForgotten: UInt64 = 0

    init(_ configuration: LoopbackBroker.Configuration) {
        exchange = LoopbackExchange(
            limits: .init(
                messageCount: max(configuration.sessionQueueLimit, 0),
                byteCount: max(configuration.sessionQueueByteLimit, 0)
            )
        )
        destinations = LoopbackDestinations(
            queueLimit: configuration.queueLimit,
            queueByteLimit: configuration.queueByteLimit
        )
        eventTopics = LoopbackEventTopics(memory: configuration.eventMemory)
    }

    // MARK: Members

    /// The members in the order of their connections: the order of a dictionary is different in each run.
    var membersInOrder: [LoopbackMember] { members.valuesInKeyOrder }

    func member(_ identifier: UInt64) -> LoopbackMember? { members[identifier] }

    mutating func makeIdentifier() -> UInt64 {
        lastClient += 1
        return lastClient
    }

    mutating func add(_ member: LoopbackMember, as identifier: UInt64) {
        members[identifier] = member
    }

    mutating func remove(_ identifier: UInt64) {
        members[identifier] = nil
    }

    // MARK: Restarts

    /// Forgets all but the faults; what the clients of this moment still send does not count.
    mutating func forget() {
        lastForgotten = lastClient
        exchange.forget()
        destinations.forget()
        eventTopics.forget()
    }

    func hasForgotten(_ client: UInt64) -> Bool { client <= lastForgotten }

    // MARK: Messages

    /// Checks that so many more bytes have room.
    ///
    /// Counts all messages again only now and then, since that takes long.
    mutating func makeRoom(for count: Int) throws(LoopbackFault) {
        uncountedByteCount += count
        guard byteCount + uncountedByteCount > Self.byteLimit else { return }
        byteCount = exchange.byteCount + destinations.byteCount + eventTopics.byteCount
        uncountedByteCount = count
        guard byteCount + count > Self.byteLimit else { return }
        uncountedByteCount = 0
        throw .brokerFull
    }

    /// Decides which clients of all protocols get a message.
    ///
    /// - Parameters:
    ///   - message: The message as STOMP subscribers and event streams get it.
    ///   - publish: The message as MQTT subscribers get it; nil when its destination is no topic name.
    ///   - payload: The payload for MQTT subscribers.
    ///   - sender: The connection that it came over.
    ///   - now: The time.
    /// - Returns: The clients.
    /// - Throws: `LoopbackFault` when its queue or the broker is full.
    mutating func route(
        _ message: LoopbackMessage,
        _ publish: MQTTPublish?,
        payload: ByteSlice,
        from sender: UInt64,
        at now: WireInstant
    ) throws(LoopbackFault) -> LoopbackDispatch {
        try makeRoom(for: message.byteCount)
        return LoopbackDispatch(
            deliveries: try destinations.send(message),
            streams: eventTopics.publish(
                message.destination,
                type: message.eventType,
                data: message.body
            ),
            copies: publish.map {
                exchange.route($0, payload: payload, from: sender, at: now)
            } ?? []
        )
    }
}

/// The clients of all protocols that get a message.
struct LoopbackDispatch: Sendable {
    var deliveries: [LoopbackDelivery] = []
    /// The clients whose event streams have an event to send.
    var streams: [UInt64] = []
    var copies: [LoopbackCopy] = []
}
