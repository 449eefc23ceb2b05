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

    /// Puts an entry into words.
    /// - Throws: `invalidEntry` without a topic where one is needed; `encodingFailed`.
    static func making(
        _ entry: some EntryType,
        expectsReply: Bool = false,
        encoders: @autoclosure () -> [any BodyEncoder]
    ) throws(WaybillError) -> Request {
        // Assembled at the end, and not in an initializer: one that may still be abandoned is copied instead of moved.
        let command = entry.command
        let topic = entry.topic
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
            topic: topic,
            command: command,
            body: encoded.0,
            contentType: contentType,
            headers: headers,
            expectsReply: expectsReply,
            needsToken: entry.needsToken
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
        if let topic { text += " \(topic.withoutQuery.escaped)" }
        if !body.isEmpty { text += " (\(body))" }
        if !headers.isEmpty { text += " headers \(headers)" }
        return text
    }
}
