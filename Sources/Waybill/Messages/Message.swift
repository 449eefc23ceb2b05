package import WireCore

#if canImport(FoundationEssentials)
    public import FoundationEssentials
#else
    public import Foundation
#endif

/// What was received.
public struct Message: Sendable {
    /// Names a message to its transport, for an entry with the command `ack` or `nack`.
    public struct ID: Hashable, Sendable, CustomStringConvertible {
        package enum Storage: Hashable, Sendable {
            case number(UInt64)
            case text(WireName)
        }

        package let storage: Storage

        package init(_ storage: Storage) {
            self.storage = storage
        }

        /// A name that a transport of one's own gives, compared by its bytes.
        public init(_ name: String) {
            storage = .text(WireName(name))
        }

        /// A number that a transport of one's own gives.
        public init(_ number: UInt64) {
            storage = .number(number)
        }

        /// The name as text.
        public var description: String {
            switch storage {
            case .number(let number): String(number)
            case .text(let name): name.text
            }
        }
    }

    /// Facts that only some messages have.
    public struct Details: Hashable, Sendable {
        /// Where an answer is expected.
        public var responseTopic: String?
        /// What an answer must carry, so that it is told apart.
        public var correlationData: [UInt8]?
        /// How much longer the server would have kept it.
        public var expiry: Duration?
        /// What kind of event it is; nil for `message`, the kind of those that name none.
        public var eventType: String?
        /// Whether the sender says that the body is text (MQTT 5, 3.3.2.3.2).
        public var isText: Bool?

        /// No facts.
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

    // Out of line: on its way to the consumer a message is copied several times, each time at the price of one
    // count of references instead of one for each field.
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
    /// Who wants to know that the message was taken or dropped.
    package var delivery: (any MessageDelivery)?

    private var fields: Fields {
        get { storage.fields }
        set { storage = Storage(newValue) }
    }

    /// The message's name; nil when it needs no acknowledgement and the peer gave it none.
    public var id: ID? {
        get { storage.fields.id }
        set { fields.id = newValue }
    }

    /// Where it was sent to.
    public var topic: String {
        get { storage.fields.topic }
        set { fields.topic = newValue }
    }

    /// What it says.
    public var body: Payload {
        get { storage.fields.body }
        set { fields.body = newValue }
    }

    /// What it says beside it.
    ///
    /// Changing it copies it: whoever adds many headers does so to a list of their own and sets that.
    public var headers: Headers {
        get { storage.fields.headers }
        set { fields.headers = newValue }
    }

    /// What kind of body it is, as far as the sender says.
    public var contentType: String? {
        get { storage.fields.contentType }
        set { fields.contentType = newValue }
    }

    /// How surely it was delivered.
    public var qos: QoS {
        get { storage.fields.qos }
        set { fields.qos = newValue }
    }

    /// Whether the server had kept it from before the subscription.
    public var isRetained: Bool {
        get { storage.fields.isRetained }
        set { fields.isRetained = newValue }
    }

    /// Whether the peer says that it may have sent it before.
    public var isDuplicate: Bool {
        get { storage.fields.isDuplicate }
        set { fields.isDuplicate = newValue }
    }

    /// Rare facts.
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

    /// Where its sender awaits an answer; nil when none is awaited.
    ///
    /// See ``EntryCommand/reply(to:qos:)``.
    public var replyTopic: String? { details?.responseTopic }
}

/// Hears once what became of a delivered message.
///
/// Called with no lock held.
package protocol MessageDelivery: AnyObject, Sendable {
    /// The consumer is about to take it.
    /// - Returns: Whether the consumer gets it.
    func messageWasTaken() -> MessageValidity
    /// No consumer will take it.
    func messageWasDropped()
    /// Whether the consumer gets it, without taking it.
    var validity: MessageValidity { get }
    /// The transport's own delivery, where this one stands for it.
    var origin: any MessageDelivery { get }
    /// How many bytes its acknowledgement will take on the wire, so that there is room for it before it is made.
    var acknowledgementByteCount: Int { get }
}

extension MessageDelivery {
    package var origin: any MessageDelivery { self }

    package var validity: MessageValidity { .valid }

    package var acknowledgementByteCount: Int { 0 }
}

/// Whether a message that has waited still counts.
package enum MessageValidity: Sendable {
    /// The consumer gets it.
    case valid
    /// The peer sends it again: the consumer gets the repetition, unless its subscription is over.
    case comesAgain
    /// It is the empty place of a message that was dropped.
    case empty
}

extension Message: CustomStringConvertible {
    /// Topic and length, never the content.
    public var description: String { "message of \(body) from \(topic.withoutQuery.escaped)" }
}
