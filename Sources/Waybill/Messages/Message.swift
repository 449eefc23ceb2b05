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

    /// The fields that only some messages have, out of line so that the others are cheap to move.
    final class Uncommon: Sendable {
        let headers: Headers
        let contentType: String?
        let values: KeyedValues

        init(headers: Headers, contentType: String?, values: KeyedValues) {
            self.headers = headers
            self.contentType = contentType
            self.values = values
        }
    }

    /// The message's identifier; nil when it needs no acknowledgement and the peer gave it none.
    public var id: ID?

    /// The topic that the message was sent to.
    public var topic: String

    /// The body of the message.
    ///
    /// Short bodies that arrived together share blocks of memory of at most 4 KiB. A body that is kept for long keeps
    /// its block; a copy of its ``Payload/bytes`` or ``Payload/data`` does not.
    public var body: Payload

    var uncommon: Uncommon?

    /// The object that is told when the message was taken or dropped.
    @usableFromInline package var delivery: (any MessageDelivery)?

    /// Four flags and the quality of service, in one byte: a value of few parts is moved without a call.
    private var marks: UInt8
    private static var retainedMark: UInt8 { 0x10 }
    private static var duplicateMark: UInt8 { 0x20 }
    private static var boundedMark: UInt8 { 0x40 }
    private static var emptyPlaceMark: UInt8 { 0x80 }

    /// The quality of service of the delivery.
    public var qos: QoS {
        get { QoS(rawValue: Int(marks & 0x0F)) ?? .atMostOnce }
        set { marks = marks & 0xF0 | UInt8(newValue.rawValue) }
    }

    /// Whether the server kept the message from before the subscription.
    public var isRetained: Bool {
        get { marks & Self.retainedMark != 0 }
        set { marks = newValue ? marks | Self.retainedMark : marks & ~Self.retainedMark }
    }

    /// Whether the peer marks the message as possibly sent before.
    public var isDuplicate: Bool {
        get { marks & Self.duplicateMark != 0 }
        set { marks = newValue ? marks | Self.duplicateMark : marks & ~Self.duplicateMark }
    }

    /// The headers of the message.
    ///
    /// Each change copies the headers. To add many, build a `Headers` value first and assign it once.
    public var headers: Headers {
        get { uncommon?.headers ?? [:] }
        set { setUncommon(newValue, contentType, values) }
    }

    /// The content type of the body, if the sender gave one.
    public var contentType: String? {
        get { uncommon?.contentType }
        set { setUncommon(headers, newValue, values) }
    }

    /// A value that only some messages have, by its key.
    ///
    /// The module of a transport declares the keys of what its protocol adds, such as `message[.expiry]` with
    /// `WaybillMQTT`. An app may set values under keys of its own, in an interceptor for instance.
    ///
    /// Each change copies the headers and the other values.
    ///
    /// - Parameter key: The key of the value.
    /// - Returns: The value; nil for a message without it.
    public subscript<Value>(key: OptionKey<Value>) -> Value? {
        get { uncommon?.values[key] }
        set {
            var values = values
            values[key] = newValue
            setUncommon(headers, contentType, values)
        }
    }

    private var values: KeyedValues { uncommon?.values ?? KeyedValues() }

    private mutating func setUncommon(
        _ headers: Headers,
        _ contentType: String?,
        _ values: KeyedValues
    ) {
        uncommon = Uncommon(headers: headers, contentType: contentType, values: values)
    }

    /// Stands where a message was moved away; refers to no memory, so that a copy counts no reference.
    ///
    /// Computed from constants, because a copy of a stored one takes a call.
    private static var placeholder: Message {
        @inline(__always) get { Message(topic: "", body: .empty, marks: 0) }
    }

    /// Whether the protocol bounds the messages that wait, so that no buffer policy has to.
    ///
    /// A mark, because to ask the delivery would count references for each message.
    package var isBoundedByPeer: Bool {
        get { marks & Self.boundedMark != 0 }
        set { marks = newValue ? marks | Self.boundedMark : marks & ~Self.boundedMark }
    }

    /// Whether a buffer policy covers the message.
    var isCounted: Bool { !isBoundedByPeer }

    /// Whether the message stands in the place of a dropped one; see ``EmptyPlaces``.
    var isEmptyPlace: Bool {
        get { marks & Self.emptyPlaceMark != 0 }
        set { marks = newValue ? marks | Self.emptyPlaceMark : marks & ~Self.emptyPlaceMark }
    }

    /// Takes the message out of its place, which counts no references as a copy would.
    @inline(__always)
    mutating func moveOut() -> Message { exchange(&self, with: .placeholder) }

    /// The body as text, in the character set of its content type, else UTF-8; nil when it is none.
    public var text: String? {
        guard let contentType, let characters = BodyCharset(ofContentType: contentType) else {
            return body.text
        }
        return characters.text(of: body.bytes)
    }

    /// The body as data.
    public var data: Data { body.data }

    /// The topic on which the sender waits for a reply; nil if it waits for none.
    ///
    /// See ``EntryCommand/reply(to:qos:)``.
    public var replyTopic: String? { self[.responseTopic] }
}

// In an extension, so that the compiler makes the initialiser of all fields, which moves them.
extension Message {
    /// Makes a message, as a transport or a test does.
    public init(
        topic: String,
        body: Payload = Payload(),
        headers: Headers = Headers(),
        contentType: String? = nil,
        qos: QoS = .atMostOnce,
        isRetained: Bool = false,
        isDuplicate: Bool = false,
        id: ID? = nil
    ) {
        self.init(
            topic: topic,
            body: body,
            headers: headers,
            contentType: contentType,
            qos: qos,
            isRetained: isRetained,
            isDuplicate: isDuplicate,
            id: id,
            values: KeyedValues()
        )
    }

    /// Makes a message with what its protocol adds.
    package init(
        topic: String,
        body: Payload,
        headers: Headers = Headers(),
        contentType: String? = nil,
        qos: QoS = .atMostOnce,
        isRetained: Bool = false,
        isDuplicate: Bool = false,
        id: ID? = nil,
        values: KeyedValues
    ) {
        self = .plain(topic, body, qos, isRetained: isRetained, isDuplicate: isDuplicate, id: id)
        let isPlain =
            headers.isEmpty && headers.lookup == .exact && contentType == nil && values.isEmpty
        if !isPlain { setUncommon(headers, contentType, values) }
    }

    /// Makes a message without headers, content type and values under keys.
    ///
    /// A function that is not inlined, since it makes the message in its place, where an initialiser copies it.
    @inline(never)
    package static func plain(
        _ topic: String,
        _ body: consuming Payload,
        _ qos: QoS = .atMostOnce,
        isRetained: Bool = false,
        isDuplicate: Bool = false,
        id: ID? = nil
    ) -> Message {
        Message(
            id: id,
            topic: topic,
            body: body,
            marks: UInt8(qos.rawValue) | (isRetained ? retainedMark : 0)
                | (isDuplicate ? duplicateMark : 0)
        )
    }
}

/// The receiver of a message's outcome: taken or dropped, once.
///
/// Called with no lock held.
@usableFromInline
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
@usableFromInline
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
    public var description: String { "message of \(body) from \(topic.withoutQuery.excerpt)" }
}
