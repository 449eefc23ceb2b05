import MQTTWire
import STOMPWire
import Waybill
import WireCore

/// A message as STOMP clients get it.
struct LoopbackMessage: Sendable {
    /// Set when a queue takes it.
    var number: UInt64 = 0
    let destination: String
    /// The headers of the sender that are passed on.
    var headers: STOMPHeaders
    let body: [UInt8]
    /// True when a subscriber had it before and did not acknowledge it.
    var isRedelivered = false

    init(destination: String, headers: STOMPHeaders, body: [UInt8]) {
        self.destination = destination
        self.headers = headers
        self.body = body
    }

    /// An MQTT message as STOMP subscribers and event streams get it.
    init(_ publish: MQTTPublish, payload: ByteSlice) {
        destination = publish.topic
        headers = STOMPHeaders()
        body = payload.bytes
        if let contentType = publish.properties.contentType {
            headers.append(STOMPHeaderName.contentType, contentType)
        }
        if let topic = publish.properties.responseTopic { headers.append(Self.replyTo, topic) }
        if let data = publish.properties.correlationData, let text = Payload(data).text {
            headers.append(Self.correlationID, text)
        }
        for property in publish.properties.userProperties {
            headers.append(property.name, property.value)
        }
    }

    /// The message as MQTT subscribers get it; nil when its destination is no topic name.
    var publish: MQTTPublish? {
        guard (try? MQTTTopicName.validate(destination)) != nil else { return nil }
        var properties = MQTTProperties()
        properties.contentType = headers.first(STOMPHeaderName.contentType)
        if let topic = headers.first(Self.replyTo), (try? MQTTTopicName.validate(topic)) != nil {
            properties.responseTopic = topic
        }
        properties.correlationData = headers.first(Self.correlationID).map { Array($0.utf8) }
        let named = [STOMPHeaderName.contentType, Self.replyTo, Self.correlationID]
        properties.userProperties = headers.fields
            .filter { !named.contains(where: $0.name.hasSameBytes(as:)) }
            .map { MQTTUserProperty(name: $0.name, value: $0.value) }
        return MQTTPublish(
            topic: destination,
            qos: .atLeastOnce,
            isRetained: false,
            properties: properties
        )
    }

    /// The type of its event: that of its header `event`, if it can be written.
    var eventType: String {
        guard let type = headers.first(Self.event), !type.isEmpty,
            !type.utf8.contains(where: { $0 == 0x0A || $0 == 0x0D })
        else { return "message" }
        return type
    }

    static let event = "event"
    static let replyTo = "reply-to"
    private static let correlationID = "correlation-id"

    /// True when each message goes to one subscriber, and waits while there is none.
    static func isQueue(_ destination: String) -> Bool { destination.hasBytePrefix("/queue/") }

    /// True for a queue of one connection, for answers (RabbitMQ, STOMP plugin, "Using Temporary Queues").
    static func isTemporary(_ destination: String) -> Bool {
        destination.hasBytePrefix("/temp-queue/")
    }

    /// The bytes that count towards the bound of a queue.
    var byteCount: Int {
        headers.fields.reduce(body.count) { $0 + $1.name.utf8.count + $1.value.utf8.count }
    }

    /// The headers of a SEND that are passed on, in order.
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

/// A step of a transaction.
enum LoopbackStep: Sendable {
    case send(LoopbackMessage)
    case settle(STOMPAcknowledgement, isAccepted: Bool)
}

/// The reason for refusing a request.
enum LoopbackFault: Error {
    case subscriptionRefused, queueFull, brokerFull, messageUnknown

    var message: String {
        switch self {
        case .subscriptionRefused: "Subscription refused"
        case .queueFull: "The queue is full"
        case .brokerFull: "The broker is full"
        case .messageUnknown: "No such message waits to be acknowledged"
        }
    }
}
