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
    public var topics: [String]
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
    /// The time limit of the command; nil for the transport's own limit.
    public var timeout: Duration?

    /// Makes an entry; each parameter has the meaning of the property of the same name.
    public init(
        topic: String? = nil,
        topics: [String]? = nil,
        command: EntryCommand,
        body: EntryBody = .none,
        headers: Headers = [:],
        needsToken: Bool = true,
        retry: RetryPolicy? = nil,
        timeout: Duration? = nil
    ) {
        self.topic = topic ?? topics?.first
        self.topics = topics ?? topic.map { [$0] } ?? []
        self.command = command
        self.body = body
        self.headers = headers
        self.needsToken = needsToken
        self.retry = retry
        self.timeout = timeout
    }

    /// Sends a body to a topic; the options are those of
    /// ``EntryCommand/send(qos:retain:isIdempotent:timeout:expiry:method:asksForReceipt:responseTopic:correlationData:isText:isSentOnce:waitsForConnection:)``.
    public static func send(
        topic: String,
        body: EntryBody = .none,
        headers: Headers = [:],
        qos: QoS = .atMostOnce,
        retain: Bool = false,
        isIdempotent: Bool = false,
        timeout: Duration? = nil,
        expiry: Duration? = nil,
        method: String? = nil,
        asksForReceipt: Bool? = nil,
        responseTopic: String? = nil,
        correlationData: [UInt8]? = nil,
        isText: Bool? = nil,
        isSentOnce: Bool = false,
        waitsForConnection: Bool? = nil
    ) -> AnyEntry {
        AnyEntry(
            topic: topic,
            command: .send(
                qos: qos,
                retain: retain,
                isIdempotent: isIdempotent,
                timeout: timeout,
                expiry: expiry,
                method: method,
                asksForReceipt: asksForReceipt,
                responseTopic: responseTopic,
                correlationData: correlationData,
                isText: isText,
                isSentOnce: isSentOnce,
                waitsForConnection: waitsForConnection
            ),
            body: body,
            headers: headers
        )
    }

    /// Subscribes to a topic or a filter.
    public static func subscribe(
        topic: String,
        headers: Headers = [:],
        qos: QoS = .atMostOnce,
        options: SubscribeOptions? = nil
    ) -> AnyEntry {
        subscribe(topics: [topic], headers: headers, qos: qos, options: options)
    }

    /// Subscribes to several topics or filters at once; see ``EntryType/topics``.
    ///
    /// - Parameters:
    ///   - topics: The topics or filters.
    ///   - headers: The headers to send.
    ///   - qos: The highest quality of service wanted; not used where options are given.
    ///   - options: All options; nil for the defaults with `qos`.
    /// - Returns: The entry.
    public static func subscribe(
        topics: [String],
        headers: Headers = [:],
        qos: QoS = .atMostOnce,
        options: SubscribeOptions? = nil
    ) -> AnyEntry {
        AnyEntry(
            topics: topics,
            command: .subscribe(options ?? SubscribeOptions(qos: qos)),
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
        topics: [String],
        headers: Headers = [:],
        options: UnsubscribeOptions = UnsubscribeOptions()
    ) -> AnyEntry {
        AnyEntry(topics: topics, command: .unsubscribe(options), headers: headers)
    }

    /// Opens the connection with the transport's own settings.
    public static var connect: AnyEntry { AnyEntry(command: .connect) }

    /// Opens the connection with options.
    public static func connect(_ options: ConnectOptions, headers: Headers = [:]) -> AnyEntry {
        AnyEntry(command: .connect(options), headers: headers)
    }

    /// Closes the connection with the transport's own settings.
    public static var disconnect: AnyEntry { AnyEntry(command: .disconnect) }

    /// Closes the connection with options.
    public static func disconnect(_ options: DisconnectOptions) -> AnyEntry {
        AnyEntry(command: .disconnect(options))
    }
}

extension AnyEntry: CustomStringConvertible, Unmirrored {
    /// Command and topics, without the queries of the topics.
    public var description: String {
        ([command.name] + topics.map { $0.withoutQuery.escaped }).joined(separator: " ")
    }
}
