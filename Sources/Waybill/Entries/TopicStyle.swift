import WireCore

/// How a broker writes the topics that entries write as `chat/lobby`.
///
/// Entries use MQTT's syntax: levels between slashes, `+` for one level, `#` for all further levels. A style translates
/// that into the destinations of another broker, and the destinations of received messages back.
///
/// | entry | ``rabbitMQ`` | ``activeMQ`` | ``artemis`` | ``spring`` |
/// | --- | --- | --- | --- | --- |
/// | `chat/lobby` | `/topic/chat.lobby` | `/topic/chat.lobby` | `chat.lobby` | `/topic/chat/lobby` |
/// | `chat/lobby` of a send | the same | the same | the same | `/app/chat/lobby` |
/// | `chat/+` | `/topic/chat.*` | `/topic/chat.*` | `chat.*` | `/topic/chat/*` |
/// | `chat/#` | `/topic/chat.#` | `/topic/chat.>` | `chat.#` | `/topic/chat/**` |
/// | `/queue/orders` | `/queue/orders` | `/queue/orders` | `/queue/orders` | `/queue/orders` |
///
/// A topic that begins with a slash is already the broker's destination and stays as it is. A level with a character
/// that the style gives a meaning, such as a dot, is refused with `invalidEntry`. With a slash as the separator these
/// are `*`, `?`, `{` and `}`: Spring's broker reads destinations as path patterns.
public struct TopicStyle: Hashable, Sendable {
    /// The character between the levels of a destination.
    public var separator: Character
    /// The text before each destination.
    public var prefix: String
    /// The text before the destination of a send; nil for ``prefix``.
    public var sendPrefix: String?
    /// The wildcard for one level in a subscription.
    public var anyLevel: String
    /// The wildcard for all further levels in a subscription.
    public var furtherLevels: String

    /// A style of one's own.
    ///
    /// - Parameters:
    ///   - separator: The character between the levels of a destination.
    ///   - prefix: The text before each destination, such as `/topic/`.
    ///   - sendPrefix: The text before the destination of a send, such as `/app/`; nil for `prefix`.
    ///   - anyLevel: The wildcard for one level in a subscription.
    ///   - furtherLevels: The wildcard for all further levels in a subscription.
    public init(
        separator: Character = ".",
        prefix: String = "",
        sendPrefix: String? = nil,
        anyLevel: String = "*",
        furtherLevels: String = "#"
    ) {
        self.separator = separator
        self.prefix = prefix
        self.sendPrefix = sendPrefix
        self.anyLevel = anyLevel
        self.furtherLevels = furtherLevels
    }

    /// A style with a prefix and dots between the levels.
    ///
    /// - Parameters:
    ///   - prefix: The text before each destination, such as `/topic/`.
    ///   - anyLevel: The wildcard for one level in a subscription.
    ///   - furtherLevels: The wildcard for all further levels in a subscription.
    /// - Returns: The style.
    public static func dotted(
        prefix: String,
        anyLevel: String = "*",
        furtherLevels: String = "#"
    ) -> TopicStyle {
        TopicStyle(prefix: prefix, anyLevel: anyLevel, furtherLevels: furtherLevels)
    }

    /// The topics of RabbitMQ's STOMP plugin.
    public static let rabbitMQ = TopicStyle.dotted(prefix: "/topic/")
    /// The topics of ActiveMQ over STOMP.
    public static let activeMQ = TopicStyle.dotted(prefix: "/topic/", furtherLevels: ">")
    /// The addresses of ActiveMQ Artemis over STOMP.
    ///
    /// Artemis has no prefix unless its acceptor sets `multicastPrefix`. For `multicastPrefix=/topic/` use
    /// `TopicStyle(prefix: "/topic/")`.
    public static let artemis = TopicStyle()
    /// The destinations of Spring's simple broker.
    ///
    /// A send goes to the application, below `/app`; a subscription is one of the broker, below `/topic`. A handler
    /// method that has no destination of its own publishes its result below `/topic`, under the same name. The topic
    /// for replies, ``SendOption/responseTopic(_:)``, is below `/topic`, too. For other prefixes make a style of your
    /// own.
    public static let spring = TopicStyle(
        separator: "/",
        prefix: "/topic/",
        sendPrefix: "/app/",
        furtherLevels: "**"
    )

    private static let slash = UInt8(ascii: "/")

    /// The broker's destination for a topic.
    ///
    /// - Parameters:
    ///   - topic: The topic of an entry.
    ///   - allowsWildcards: True for a subscription, false for a send.
    /// - Returns: The destination.
    /// - Throws: `invalidEntry` for a topic that the style cannot express.
    public func destination(
        of topic: String,
        allowsWildcards: Bool
    ) throws(WaybillError) -> String {
        try destination(
            of: topic,
            after: allowsWildcards ? prefix : sendPrefix ?? prefix,
            allowsWildcards: allowsWildcards
        )
    }

    /// The broker's destination for the topic of replies: the sender subscribes to it, and it has no wildcard.
    fileprivate func destination(ofReplies topic: String) throws(WaybillError) -> String {
        try destination(of: topic, after: prefix, allowsWildcards: false)
    }

    private func destination(
        of topic: String,
        after prefix: String,
        allowsWildcards: Bool
    ) throws(WaybillError) -> String {
        if topic.utf8.first == Self.slash { return topic }
        let levels = topic.utf8.split(separator: Self.slash, omittingEmptySubsequences: false)
        var names: [String] = []
        for (index, level) in levels.enumerated() {
            let level = String(Substring(level))
            let isWildcard = level.hasSameBytes(as: "+") || level.hasSameBytes(as: "#")
            if isWildcard {
                let isPlaced = level.hasSameBytes(as: "+") || index == levels.count - 1
                guard allowsWildcards, isPlaced else { throw Self.misplaced(topic) }
                names.append(level.hasSameBytes(as: "+") ? anyLevel : furtherLevels)
            } else {
                guard isPlain(level) else { throw Self.ambiguous(topic) }
                names.append(level)
            }
        }
        return prefix + names.joined(separator: String(separator))
    }

    /// Whether a level means itself in a destination.
    private func isPlain(_ level: String) -> Bool {
        !level.hasSameBytes(as: anyLevel) && !level.hasSameBytes(as: furtherLevels)
            && !level.utf8.contains { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }
            && levels(of: level.utf8[...]).count == 1
            && !(hasPathPatterns && level.utf8.contains(where: Self.isOfPathPatterns))
    }

    /// Whether the broker reads destinations as path patterns, in which a wildcard may be a part of a level.
    private var hasPathPatterns: Bool { separator.utf8.elementsEqual([Self.slash]) }

    private static func isOfPathPatterns(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "*"), UInt8(ascii: "?"), UInt8(ascii: "{"), UInt8(ascii: "}"): true
        default: false
        }
    }

    /// The texts between the bytes of the separator.
    private func levels(of name: Substring.UTF8View) -> [String] {
        let bytes = Array(separator.utf8)
        return name.split(separator: bytes, omittingEmptySubsequences: false)
            .map { String(Substring($0)) }
    }

    /// The topic that a broker's destination stands for.
    ///
    /// - Parameter destination: The destination of a received message.
    /// - Returns: The topic; the destination itself if this style gives no topic that destination in a subscription.
    public func topic(of destination: String) -> String {
        guard destination.hasBytePrefix(prefix) else { return destination }
        let name = destination.utf8.dropFirst(prefix.utf8.count)
        guard !name.isEmpty, hasPathPatterns || !name.contains(Self.slash) else {
            return destination
        }
        let levels = self.levels(of: name)
        guard levels.first?.isEmpty == false else { return destination }
        return levels.joined(separator: "/")
    }

    private static func misplaced(_ topic: String) -> WaybillError {
        WaybillError(
            .invalidEntry,
            "a wildcard is a whole level of a subscription, and # its last one",
            topic: topic
        )
    }

    private static func ambiguous(_ topic: String) -> WaybillError {
        WaybillError(
            .invalidEntry,
            "a level of the topic contains a character that means something else in the style of the broker",
            topic: topic
        )
    }
}

/// Translates topics on the way out, and back on the way in.
private struct TopicRenaming: Interceptor {
    let style: TopicStyle

    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        switch request.command.code {
        case .send:
            guard let topic = request.topic else { return }
            request.topic = try style.destination(of: topic, allowsWildcards: false)
            guard let answers = request.command[.responseTopic] else { return }
            request.command[.responseTopic] = try style.destination(ofReplies: answers)
        case .subscribe, .unsubscribe:
            var topics = request.topics
            for index in topics.indices {
                let name = topics[index].name
                topics[index].name = try style.destination(of: name, allowsWildcards: true)
            }
            request.topics = topics
        case .connect, .ack, .nack, .disconnect, .other: break
        }
    }

    func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
        var renamed = message
        renamed.topic = style.topic(of: message.topic)
        if let answers = message.replyTopic {
            renamed[.responseTopic] = style.topic(of: answers)
        }
        return renamed
    }
}

extension Provider {
    /// The same provider for a broker with its own topic syntax.
    ///
    /// The style comes after the interceptors added before it, which see the topics of entries. It comes before those
    /// added later, which see the broker's destinations. Errors and events of the transport show the broker's
    /// destinations.
    ///
    /// ```swift
    /// let chat = Provider<ChatEntry>(transport: stomp).topicStyle(.rabbitMQ)
    /// ```
    public func topicStyle(_ style: TopicStyle) -> Self {
        intercepted(TopicRenaming(style: style))
    }
}
