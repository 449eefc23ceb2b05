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
            case text(String)
        }

        package let storage: Storage

        package init(_ storage: Storage) {
            self.storage = storage
        }

        /// The name as text.
        public var description: String {
            switch storage {
            case .number(let number): String(number)
            case .text(let text): text
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

    /// The message's name; nil when it needs no acknowledgement and the peer gave it none.
    public var id: ID?
    /// Where it was sent to.
    public var topic: String
    /// What it says.
    public var body: Payload
    /// What it says beside it.
    public var headers: Headers
    /// What kind of body it is, as far as the sender says.
    public var contentType: String?
    /// How surely it was delivered.
    public var qualityOfService: QualityOfService
    /// Whether the server had kept it from before the subscription.
    public var isRetained: Bool
    /// Whether the peer says that it may have sent it before.
    public var isDuplicate: Bool
    /// Rare facts.
    public var details: Details? {
        get { box?.details }
        set { box = newValue.map(DetailsBox.init) }
    }

    // Out of line: most messages have none.
    private var box: DetailsBox?
    /// Who wants to know that the message was taken or dropped.
    package var delivery: (any MessageDelivery)?

    private final class DetailsBox: Sendable {
        let details: Details

        init(_ details: Details) {
            self.details = details
        }
    }

    /// Makes a message, as a transport or a test does.
    public init(
        topic: String,
        body: Payload = Payload(),
        headers: Headers = [:],
        contentType: String? = nil,
        qualityOfService: QualityOfService = .atMostOnce,
        isRetained: Bool = false,
        isDuplicate: Bool = false,
        id: ID? = nil
    ) {
        self.id = id
        self.topic = topic
        self.body = body
        self.headers = headers
        self.contentType = contentType
        self.qualityOfService = qualityOfService
        self.isRetained = isRetained
        self.isDuplicate = isDuplicate
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
    /// The consumer has taken it.
    func messageWasTaken()
    /// Nobody will take it.
    func messageWasDropped()
}

extension Message: CustomStringConvertible {
    /// Topic and length, never the content.
    public var description: String { "message of \(body) from \(topic.withoutQuery)" }
}
