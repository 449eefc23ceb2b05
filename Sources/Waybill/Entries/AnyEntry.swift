import WireCore

/// An entry without an enum of its own, for a single request or a service that is still being explored.
///
/// ```swift
/// let provider = Provider<AnyEntry>(transport: transport)
/// try await provider.request(.send(topic: "lamps/hall", body: .text("on"), qos: .atLeastOnce))
/// let messages = try await provider.messages(.subscribe(topic: "lamps/+"))
/// ```
///
/// An enum that conforms to ``EntryType`` describes a service with a few endpoints better: the compiler then reports
/// missing cases.
public struct AnyEntry: EntryType {
    /// The MQTT topic name or filter, STOMP destination, or path of an event stream; nil for commands without a topic.
    public var topic: String?
    /// The topics to subscribe to or to unsubscribe from; only ``topic`` unless others were given.
    public var topics: [EntryTopic]
    /// The command to carry out.
    public var command: EntryCommand
    /// The body to send.
    public var body: EntryBody
    /// The headers to send.
    public var headers: Headers
    /// Whether a ``TokenInterceptor`` adds its token.
    public var needsToken: Bool
    /// The retry policy; nil leaves retries to the provider's interceptors.
    public var retry: RetryPolicy?

    /// Makes an entry; each parameter has the meaning of the property of the same name.
    public init(
        topic: String? = nil,
        topics: [EntryTopic]? = nil,
        command: EntryCommand,
        body: EntryBody = .none,
        headers: Headers = [:],
        needsToken: Bool = true,
        retry: RetryPolicy? = nil
    ) {
        self.topic = topic ?? topics?.first?.name
        self.topics = topics ?? topic.map { [EntryTopic($0)] } ?? []
        self.command = command
        self.body = body
        self.headers = headers
        self.needsToken = needsToken
        self.retry = retry
    }

    /// Copies an entry of any type, so that several enums share one provider.
    ///
    /// Each property of the entry is read once, here and not when the request is made.
    ///
    /// ```swift
    /// let provider = Provider<AnyEntry>(transport: transport)
    /// try await provider.request(AnyEntry(ChatEntry.say(hello, room: "lobby")))
    /// let prices = try await provider.messages(AnyEntry(ShopEntry.prices), as: Price.self)
    /// ```
    ///
    /// - Parameter entry: The entry.
    public init(_ entry: some EntryType) {
        topic = entry.topic
        topics = entry.topics
        command = entry.command
        body = entry.body
        headers = entry.headers
        needsToken = entry.needsToken
        retry = entry.retry
    }

    /// Sends a body to a topic.
    public static func send(
        topic: String,
        body: EntryBody = .none,
        headers: Headers = [:],
        qos: QoS = .atMostOnce,
        _ options: SendOption...
    ) -> AnyEntry {
        AnyEntry(
            topic: topic,
            command: .send(qos: qos, options: options),
            body: body,
            headers: headers
        )
    }

    /// Subscribes to a topic or a filter.
    public static func subscribe(
        topic: String,
        headers: Headers = [:],
        qos: QoS = .atMostOnce,
        _ options: SubscribeOption...
    ) -> AnyEntry {
        subscribe(topics: [EntryTopic(topic)], headers: headers, qos: qos, options: options)
    }

    /// Subscribes to several topics or filters at once; see ``EntryType/topics``.
    ///
    /// - Parameters:
    ///   - topics: The topics or filters.
    ///   - headers: The headers to send.
    ///   - qos: The highest quality of service wanted for topics without one of their own.
    ///   - options: The options.
    /// - Returns: The entry.
    public static func subscribe(
        topics: [EntryTopic],
        headers: Headers = [:],
        qos: QoS = .atMostOnce,
        options: [SubscribeOption] = []
    ) -> AnyEntry {
        AnyEntry(
            topics: topics,
            command: .subscribe(qos: qos, options: options),
            headers: headers
        )
    }

    /// Ends every subscription to a topic.
    public static func unsubscribe(topic: String) -> AnyEntry {
        AnyEntry(topic: topic, command: .unsubscribe)
    }

    /// Ends every subscription to several topics at once; see ``EntryType/topics``.
    ///
    /// - Parameters:
    ///   - topics: The topics or filters.
    ///   - headers: The headers to send.
    ///   - options: The options.
    /// - Returns: The entry.
    public static func unsubscribe(
        topics: [EntryTopic],
        headers: Headers = [:],
        options: [UnsubscribeOption] = []
    ) -> AnyEntry {
        AnyEntry(topics: topics, command: .unsubscribe(options: options), headers: headers)
    }

    /// Opens the connection with the transport's own settings.
    public static var connect: AnyEntry { AnyEntry(command: .connect) }

    /// Opens the connection with options.
    public static func connect(_ options: ConnectOption..., headers: Headers = [:]) -> AnyEntry {
        AnyEntry(command: .connect(options: options), headers: headers)
    }

    /// Closes the connection with the transport's own settings.
    public static var disconnect: AnyEntry { AnyEntry(command: .disconnect) }

    /// Closes the connection with options.
    public static func disconnect(_ options: DisconnectOption...) -> AnyEntry {
        AnyEntry(command: .disconnect(options: options))
    }
}

extension AnyEntry: CustomStringConvertible, Unmirrored {
    /// Command and topics, without the queries of the topics.
    public var description: String {
        ([command.name] + topics.map(\.description)).joined(separator: " ")
    }
}
