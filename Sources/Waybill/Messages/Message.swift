package import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// A received message.
public struct Message: Sendable {
    /// Identifies a message to its transport, for an entry with the command `ack` or `nack`.
    public struct ID: Hashable, Sendable, CustomStringConvertible {
        package enum Storage: Hashable, Sendable {
            case number(UInt64)
            case text(WireName)
        }

        package let storage: Storage

        package init(_ storage: Storage) {
            self.storage = storage
        }

        /// A name that a custom transport gives; compared by its bytes.
        public init(_ name: String) {
            storage = .text(WireName(name))
        }

        /// A number that a custom transport gives.
        public init(_ number: UInt64) {
            storage = .number(number)
        }

        /// The identifier as text.
        public var description: String {
            switch storage {
            case .number(let number): String(number)
            case .text(let name): name.text
            }
        }
    }

    /// Properties that only some messages have.
    public struct Details: Hashable, Sendable {
        /// The topic for a reply.
        public var responseTopic: String?
        /// Data that a reply must carry back, so that it can be matched.
        public var correlationData: [UInt8]?
        /// The remaining time for which the server would have kept the message.
        public var expiry: Duration?
        /// The event type; nil for `message`, the type of events that name none.
        public var eventType: String?
        /// Whether the sender declares the body as text (MQTT 5, 3.3.2.3.2).
        public var isText: Bool?

        /// Makes details without any value.
        public init() {}
    }

    private struct Fields: Sendable {
        var id: ID?
        var topic: String
        var body: Payload
        var headers: Headers
        var contentType: String?
        var qos: QoS
        var isRetained: Bool
        var isDuplicate: Bool
        var details: DetailsBox?
    }

    // Out of line: a message is copied several times on its way to the consumer. Each copy then costs one reference
    // count instead of one per field.
    private final class Storage: Sendable {
        let fields: Fields

        init(_ fields: Fields) {
            self.fields = fields
        }
    }

    private final class DetailsBox: Sendable {
        let details: Details

        init(_ details: Details) {
            self.details = details
        }
    }

    private var storage: Storage
    /// The object that is told when the message was taken or dropped.
    package var delivery: (any MessageDelivery)?

    private var fields: Fields {
        get { storage.fields }
        set { storage = Storage(newValue) }
    }

    /// The message's identifier; nil when it needs no acknowledgement and the peer gave it none.
    public var id: ID? {
        get { storage.fields.id }
        set { fields.id = newValue }
    }

    /// The topic that the message was sent to.
    public var topic: String {
        get { storage.fields.topic }
        set { fields.topic = newValue }
    }

    /// The body of the message.
    public var body: Payload {
        get { storage.fields.body }
        set { fields.body = newValue }
    }

    /// The headers of the message.
    ///
    /// Each change copies the headers. To add many, build a `Headers` value first and assign it once.
    public var headers: Headers {
        get { storage.fields.headers }
        set { fields.headers = newValue }
    }

    /// The content type of the body, if the sender gave one.
    public var contentType: String? {
        get { storage.fields.contentType }
        set { fields.contentType = newValue }
    }

    /// The quality of service of the delivery.
    public var qos: QoS {
        get { storage.fields.qos }
        set { fields.qos = newValue }
    }

    /// Whether the server kept the message from before the subscription.
    public var isRetained: Bool {
        get { storage.fields.isRetained }
        set { fields.isRetained = newValue }
    }

    /// Whether the peer marks the message as possibly sent before.
    public var isDuplicate: Bool {
        get { storage.fields.isDuplicate }
        set { fields.isDuplicate = newValue }
    }

    /// Properties that only some messages have; nil if there are none.
    public var details: Details? {
        get { storage.fields.details?.details }
        set { fields.details = newValue.map(DetailsBox.init) }
    }

    /// Makes a message, as a transport or a test does.
    public init(
        topic: String,
        body: Payload = Payload(),
        headers: Headers = [:],
        contentType: String? = nil,
        qos: QoS = .atMostOnce,
        isRetained: Bool = false,
        isDuplicate: Bool = false,
        id: ID? = nil,
        details: Details? = nil
    ) {
        storage = Storage(
            Fields(
                id: id,
                topic: topic,
                body: body,
                headers: headers,
                contentType: contentType,
                qos: qos,
                isRetained: isRetained,
                isDuplicate: isDuplicate,
                details: details.map(DetailsBox.init)
            )
        )
    }

    /// The body as text; nil when it is not UTF-8.
    public var text: String? { body.text }

    /// The body as data.
    public var data: Data { body.data }

    /// The topic on which the sender waits for a reply; nil if it waits for none.
    ///
    /// See ``EntryCommand/reply(to:qos:)``.
    public var replyTopic: String? { details?.responseTopic }
}

/// The receiver of a message's outcome: taken or dropped, once.
///
/// Called with no lock held.
package protocol MessageDelivery: AnyObject, Sendable {
    /// The consumer is about to take the message.
    ///
    /// - Returns: Whether the consumer gets it.
    func messageWasTaken() -> MessageValidity
    /// No consumer will take the message.
    func messageWasDropped()
    /// Whether the consumer would get the message; asking does not take it.
    var validity: MessageValidity { get }
    /// The delivery of the transport; another one than `self` where this delivery wraps it.
    var origin: any MessageDelivery { get }
    /// The number of bytes of its acknowledgement on the wire, so that room can be reserved in advance.
    var acknowledgementByteCount: Int { get }
}

extension MessageDelivery {
    package var origin: any MessageDelivery { self }

    package var validity: MessageValidity { .valid }

    package var acknowledgementByteCount: Int { 0 }
}

/// Whether a message that has waited is still to be delivered.
package enum MessageValidity: Sendable {
    /// The consumer gets it.
    case valid
    /// The peer sends the message again. The consumer gets the repetition, unless its subscription ended.
    case comesAgain
    /// The place is that of a dropped message.
    case empty
}

extension Message: CustomStringConvertible {
    /// Topic and length, never the content.
    public var description: String { "message of \(body) from \(topic.withoutQuery.escaped)" }
}
