import WireCore

/// How a broker writes the topics that entries write as `chat/lobby`.
///
/// Entries use MQTT's syntax: levels between slashes, `+` for one level, `#` for all further levels. A style translates
/// that into the destinations of another broker, and the destinations of received messages back.
///
/// | entry | ``rabbitMQ`` | ``activeMQ`` |
/// | --- | --- | --- |
/// | `chat/lobby` | `/topic/chat.lobby` | `/topic/chat.lobby` |
/// | `chat/+` | `/topic/chat.*` | `/topic/chat.*` |
/// | `chat/#` | `/topic/chat.#` | `/topic/chat.>` |
/// | `/queue/orders` | `/queue/orders` | `/queue/orders` |
///
/// A topic that begins with a slash is already the broker's destination and stays as it is. A level with a character
/// that the style gives a meaning, such as a dot, is refused with `invalidEntry`.
public struct TopicStyle: Hashable, Sendable {
    /// The text before each destination.
    public var prefix: String
    /// The wildcard for one level in a subscription.
    public var anyLevel: String
    /// The wildcard for all further levels in a subscription.
    public var furtherLevels: String

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

    private static let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))

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
                let isPlain =
                    !level.utf8.contains(Self.dot) && !level.hasSameBytes(as: anyLevel)
                    && !level.hasSameBytes(as: furtherLevels)
                    && !level.utf8.contains { $0 == UInt8(ascii: "+") || $0 == UInt8(ascii: "#") }
                guard isPlain else { throw Self.ambiguous(topic) }
                names.append(level)
            }
        }
        return prefix + names.joined(separator: ".")
    }

    /// The topic that a broker's destination stands for.
    ///
    /// - Parameter destination: The destination of a received message.
    /// - Returns: The topic; the destination itself if this style gives no topic that destination.
    public func topic(of destination: String) -> String {
        guard destination.hasBytePrefix(prefix) else { return destination }
        let name = destination.utf8.dropFirst(prefix.utf8.count)
        guard let first = name.first, first != Self.dot, !name.contains(Self.slash) else {
            return destination
        }
        let levels = name.split(separator: Self.dot, omittingEmptySubsequences: false)
        return levels.map { String(Substring($0)) }.joined(separator: "/")
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
            request.command[.responseTopic] = try style.destination(
                of: answers,
                allowsWildcards: false
            )
        case .subscribe, .unsubscribe:
            var names: [String] = []
            for topic in request.topics {
                names.append(try style.destination(of: topic, allowsWildcards: true))
            }
            request.topics = names
        case .connect, .ack, .nack, .disconnect, .other: break
        }
    }

    func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
        var renamed = message
        renamed.topic = style.topic(of: message.topic)
        if let answers = message.details?.responseTopic {
            renamed.details?.responseTopic = style.topic(of: answers)
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
