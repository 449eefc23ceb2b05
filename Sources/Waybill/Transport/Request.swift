import WireCore

/// A request to a transport, made from an entry.
///
/// A request is a value: interceptors pass on changed copies, and a change never affects another copy.
public struct Request: Sendable {
    /// The topic; never nil for `send`, `subscribe` and `unsubscribe`.
    public var topic: String?
    /// The command.
    public var command: EntryCommand
    /// The body.
    public var body: Payload
    /// The content type of the body; a header of the entry that sets it is already included.
    public var contentType: String?
    /// The headers.
    public var headers: Headers
    /// Whether the caller wants the peer's reply, in ``Receipt/reply``, also by the option of that name.
    public var expectsReply: Bool {
        get { asksForReply || command.isSet(.expectsReply) }
        set {
            asksForReply = newValue
            if !newValue { command[.expectsReply] = nil }
        }
    }
    /// Whether the caller wants the reply whatever the options.
    private var asksForReply: Bool
    /// Whether a ``TokenInterceptor`` adds its token.
    public var needsToken: Bool
    /// The interceptors of the request's provider; nil without interceptors.
    ///
    /// A transport that opens a connection for the request passes its CONNECT through them: see ``RequestChain``.
    package(set) public var chain: RequestChain?
    // Rarely set, so kept out of line: a request is copied several times.
    private var box: RareBox?

    private final class RareBox: Sendable {
        /// All topics where there are several, else none.
        let topics: [EntryTopic]
        let retry: RetryPolicy?

        private init(_ topics: [EntryTopic], _ retry: RetryPolicy?) {
            self.topics = topics
            self.retry = retry
        }

        // A failable initializer would allocate the object before it fails.
        static func holding(_ topics: [EntryTopic], _ retry: RetryPolicy?) -> RareBox? {
            guard topics.count > 1 || retry != nil else { return nil }
            return RareBox(topics.count > 1 ? topics : [], retry)
        }
    }

    /// The topics of a `subscribe` or an `unsubscribe`: ``topic``, and then the others where there are several.
    ///
    /// Setting them sets ``topic``, too. The quality of service of a single one becomes that of ``command``. A transport
    /// without subscriptions to several topics refuses them with `unsupported`.
    public var topics: [EntryTopic] {
        get {
            guard let topic else { return box?.topics ?? [] }
            guard let box, let first = box.topics.first else { return [EntryTopic(topic)] }
            return [EntryTopic(topic, qos: first.qos)] + box.topics.dropFirst()
        }
        set {
            topic = newValue.first?.name
            box = .holding(newValue, box?.retry)
            if newValue.count == 1, let qos = newValue[0].qos { command.qos = qos }
        }
    }

    /// Whether the request has more than one topic.
    package var hasSeveralTopics: Bool { !(box?.topics.isEmpty ?? true) }

    /// Returns one request for each distinct topic, with the topic's quality of service.
    package var partsByTopic: [Request] {
        guard hasSeveralTopics else { return [self] }
        var seen: Set<WireName> = []
        return topics.filter { seen.insert(WireName($0.name)).inserted }.map { topic in
            var part = self
            part.topics = [topic]
            return part
        }
    }

    /// Whether the entry itself states headers.
    ///
    /// A frame without a place for headers refuses these. It leaves out those that interceptors add.
    package var statesHeaders: Bool { !headers.isEmpty && chain?.statesHeaders ?? true }

    /// The retry policy of the entry.
    var retry: RetryPolicy? { box?.retry }

    /// Whether there is a retry policy; checked for each request without copying the policy.
    var hasRetry: Bool { box?.retry != nil }

    /// Makes a request.
    public init(
        topic: String?,
        command: EntryCommand,
        body: Payload = Payload(),
        contentType: String? = nil,
        headers: Headers = [:],
        expectsReply: Bool = false,
        needsToken: Bool = true
    ) {
        self.topic = topic
        self.command = command
        self.body = body
        self.contentType = contentType
        self.headers = headers
        asksForReply = expectsReply
        self.needsToken = needsToken
    }

    private init(
        _ topic: String?,
        _ command: EntryCommand,
        _ encoded: (body: Payload, contentType: String?),
        _ headers: Headers,
        expectsReply: Bool,
        needsToken: Bool,
        _ box: RareBox?
    ) {
        self.topic = topic
        self.command = command
        body = encoded.body
        contentType = encoded.contentType
        self.headers = headers
        asksForReply = expectsReply
        self.needsToken = needsToken
        self.box = box
    }
}

extension Request {
    /// Makes the request of an entry.
    ///
    /// - Parameters:
    ///   - entry: The entry.
    ///   - answer: What the caller wants.
    ///   - encoders: The encoders of the provider.
    /// - Returns: The request.
    /// - Throws: `invalidEntry` if a required topic is missing, or if the command is the wrong one for a subscription or
    ///   for another request; `unsupported` for a command without a reply; `encodingFailed`.
    static func making(
        _ entry: some EntryType,
        for answer: RequestAnswer = .receipt,
        encoders: @autoclosure () -> [any BodyEncoder]
    ) throws(WaybillError) -> Request {
        // Assembled at the end, and not in an initializer: an initializer that can still fail copies the value instead
        // of moving it.
        var command = entry.command
        var topic = entry.topic
        var topics: [EntryTopic] = []
        let mayHaveSeveralTopics =
            switch command.code {
            case .subscribe, .unsubscribe: true
            case .connect, .send, .ack, .nack, .disconnect, .other: false
            }
        if mayHaveSeveralTopics {
            topics = entry.topics
            topic = topics.first?.name
            if topics.count == 1, let qos = topics[0].qos { command.qos = qos }
        }
        if command.needsTopic, topic == nil {
            throw WaybillError(
                .invalidEntry,
                "this command needs a topic",
                command: command.name
            )
        }
        try answer.check(topic, command)
        let encoded: (Payload, contentType: String?)
        do {
            encoded = try entry.body.encode(encoders())
        } catch {
            throw WaybillError(
                .encodingFailed,
                "the body could not be encoded",
                topic: topic,
                command: command.name,
                underlying: error
            )
        }
        var headers = entry.headers
        var contentType = encoded.contentType
        if !headers.isEmpty, let stated = statedContentType(in: headers) {
            contentType = stated.value
            headers.removeAll(named: stated.name)
        }
        return Request(
            topic,
            command,
            (encoded.0, contentType),
            headers,
            expectsReply: answer == .reply,
            needsToken: entry.needsToken,
            .holding(topics, entry.retry)
        )
    }

    private static func statedContentType(in headers: Headers) -> Headers.Header? {
        headers.first { $0.name.hasSameBytesIgnoringASCIICase(as: "content-type") }
    }
}

extension Request: CustomStringConvertible {
    /// Command, topic and length; never content, header values, credentials or the query of a topic.
    public var description: String {
        var text = command.name
        for topic in topics { text += " \(topic)" }
        if !body.isEmpty { text += " (\(body))" }
        if !headers.isEmpty { text += " headers \(headers)" }
        return text
    }
}

/// What a caller wants for an entry.
enum RequestAnswer: Sendable {
    case receipt
    case reply
    case messages

    /// Refuses a command that does not give it.
    fileprivate func check(_ topic: String?, _ command: EntryCommand) throws(WaybillError) {
        let refusal: (code: WaybillError.Code, message: String)
        switch command.code {
        case .subscribe where self == .messages: return
        case .subscribe:
            refusal = (
                .invalidEntry, "a subscription gives messages, not a receipt: ask for messages(_:)"
            )
        case _ where self == .messages:
            refusal = (.invalidEntry, "only a subscription gives messages: ask for request(_:)")
        case _ where self == .reply && !command.hasReply:
            refusal = (
                .unsupported,
                "the command \(command.name) has no reply: ask for a Receipt, or for nothing (Void)"
            )
        default: return
        }
        throw WaybillError(refusal.code, refusal.message, topic: topic, command: command.name)
    }
}

extension EntryCommand {
    /// Whether a peer may answer the command with a reply.
    var hasReply: Bool { code == .send }
}
