import WireCore

/// What is asked of a transport: an entry, put into words.
///
/// A value: interceptors pass on changed copies, and nobody can change what another one holds.
public struct Request: Sendable {
    /// Where to; never nil for `send`, `subscribe` and `unsubscribe`.
    public var topic: String?
    /// What to do.
    public var command: EntryCommand
    /// What to send.
    public var body: Payload
    /// What kind of body it is; a header of the entry that says so has been taken into account.
    public var contentType: String?
    /// What to say beside it.
    public var headers: Headers
    /// Whether the caller wants the peer's answer, in ``Receipt/reply``.
    public var expectsReply: Bool
    /// Whether a ``TokenInterceptor`` puts its token on it.
    public var needsToken: Bool
    /// The interceptors of the provider that it comes from; nil without interceptors.
    ///
    /// A transport that makes a connection for the request runs its CONNECT through them: see ``RequestChain``.
    package(set) public var chain: RequestChain?
    // Rarely set: out of line, since a request is copied on its way.
    private var box: RareBox?

    private final class RareBox: Sendable {
        let furtherTopics: [String]
        let retry: RetryPolicy?

        init?(_ furtherTopics: [String], _ retry: RetryPolicy?) {
            guard !furtherTopics.isEmpty || retry != nil else { return nil }
            self.furtherTopics = furtherTopics
            self.retry = retry
        }
    }

    /// The topics of a subscription: ``topic``, and behind it the others of a subscription to several at once.
    ///
    /// Setting them sets ``topic``, too. A transport that cannot subscribe to several at once refuses them with
    /// `unsupported`.
    public var topics: [String] {
        get { (topic.map { [$0] } ?? []) + (box?.furtherTopics ?? []) }
        set {
            topic = newValue.first
            box = RareBox(Array(newValue.dropFirst()), box?.retry)
        }
    }

    /// Whether it is a subscription to more than one topic.
    package var hasSeveralTopics: Bool { !(box?.furtherTopics.isEmpty ?? true) }

    /// The request once for each of its topics, each topic once.
    package var partsByTopic: [Request] {
        guard hasSeveralTopics else { return [self] }
        var seen: Set<WireName> = []
        return topics.filter { seen.insert(WireName($0)).inserted }.map { topic in
            var part = self
            part.topics = [topic]
            return part
        }
    }

    /// How the entry itself wants to be tried again.
    var retry: RetryPolicy? { box?.retry }

    /// Whether there is one; asked of each request, so that no policy is copied for it.
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
        self.expectsReply = expectsReply
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
        self.expectsReply = expectsReply
        self.needsToken = needsToken
        self.box = box
    }

    /// Puts an entry into words.
    /// - Throws: `invalidEntry` without a topic where one is needed; `encodingFailed`.
    static func making(
        _ entry: some EntryType,
        expectsReply: Bool = false,
        encoders: @autoclosure () -> [any BodyEncoder]
    ) throws(WaybillError) -> Request {
        // Assembled at the end, and not in an initializer: one that may still be abandoned is copied instead of moved.
        var command = entry.command
        if let timeout = entry.timeout { command.fillTimeout(timeout) }
        var topic = entry.topic
        var further: [String] = []
        if case .subscribe = command {
            let topics = entry.topics
            topic = topics.first
            if topics.count > 1 { further = Array(topics.dropFirst()) }
        }
        if command.needsTopic, topic == nil {
            throw WaybillError(
                .invalidEntry,
                "this command needs a topic",
                command: command.name
            )
        }
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
            expectsReply: expectsReply,
            needsToken: entry.needsToken,
            RareBox(further, entry.retry)
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
        for topic in topics { text += " \(topic.withoutQuery.escaped)" }
        if !body.isEmpty { text += " (\(body))" }
        if !headers.isEmpty { text += " headers \(headers)" }
        return text
    }
}
