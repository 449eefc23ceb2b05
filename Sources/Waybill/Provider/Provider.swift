/// Performs the requests of entries, and decodes messages to values.
///
/// A provider is a value: copies share the transport. Several providers with different entry types may share one
/// transport and its connection. Everything runs on the caller's actor; a call from the main actor does not hop. After
/// 256 calls that did not have to wait, a call yields the actor to other tasks.
public struct Provider<Entry: EntryType>: Sendable {
    private(set) var runner: RequestRunner

    /// Makes a provider.
    ///
    /// - Parameters:
    ///   - transport: The transport that carries the requests.
    ///   - configuration: Decoders, encoders, limits and the clock.
    public init(
        transport: some Transport,
        configuration: ProviderConfiguration = ProviderConfiguration()
    ) {
        runner = RequestRunner(transport: transport, configuration: configuration)
    }

    /// The same provider with more interceptors after the present ones.
    public func intercepted(_ interceptors: any Interceptor...) -> Self {
        changed { $0.intercepted(interceptors) }
    }

    /// The same provider with a logger for requests, receipts, messages and failures.
    public func logged(_ logger: some WireLogger) -> Self {
        changed { $0.logged(logger) }
    }

    /// The same provider with another runner.
    func changed(_ change: (RequestRunner) -> RequestRunner) -> Self {
        var copy = self
        copy.runner = change(runner)
        return copy
    }

    /// The states of the transport's connection.
    public var states: ConnectionStates { runner.transport.states }

    /// The events of the transport, with the retries and tokens of its providers.
    public var events: TransportEvents { runner.interception.eventSource.events }

    // MARK: Requests

    /// Performs an entry.
    ///
    /// - Parameter entry: Any entry but a subscription.
    /// - Returns: The receipt, after the peer has confirmed the request, as far as the protocol confirms such a
    ///   command.
    /// - Throws: `WaybillError`: `invalidEntry` for a subscription or a missing topic, `encodingFailed`,
    ///   `interceptorFailed`, and the errors of ``Transport/perform(_:)``; or `CancellationError`.
    @discardableResult
    public func request(_ entry: Entry) async throws -> Receipt {
        let request = try makeRequest(entry, for: .receipt)
        return try await runner.perform(request)
    }

    // Disfavored, so that a closure without a result calls the form above, and not this one with `Void`.
    /// Performs an entry and returns its outcome as a type.
    ///
    /// ```swift
    /// let fare: Fare = try await provider.request(.quote(q))               // the reply, decoded
    /// let reply = try await provider.request(.quote(q), as: Message.self)  // the reply as it is
    /// let receipt: Receipt = try await provider.request(.say(message))     // the peer's answer
    /// let _: Void = try await provider.request(.say(message))              // confirmed, without a value
    /// ```
    ///
    /// - Parameters:
    ///   - entry: For `Void` and `Receipt`, any entry but a subscription; for other types, one with the command `send`.
    ///   - type: `Void` or `Receipt`, which ask for no reply; `Message`, the undecoded reply; `String`, `Data` or
    ///     `[UInt8]`, the body as it is; or a type that one of the provider's decoders makes, such as every `Decodable`
    ///     type with the JSON decoder.
    /// - Returns: The value.
    /// - Throws: As ``request(_:)``; `decodingFailed`. Before anything is sent, `unsupported` for a command without a
    ///   reply and `invalidEntry` for a type that no decoder makes.
    @_disfavoredOverload
    public func request<Reply: Sendable>(
        _ entry: Entry,
        as type: Reply.Type = Reply.self
    ) async throws -> Reply {
        if Receipt.answers(type) {
            return try (try await self.request(entry) as Receipt).value(as: type)
        }
        let request = try makeRequest(entry, for: .reply)
        try decoding.check(type, request)
        return try await runner.reply(to: request) { reply throws(WaybillError) in
            try decoding.decode(type, from: reply)
        }
    }

    // MARK: Subscriptions

    /// Subscribes as an entry says, and gives each message as it is.
    ///
    /// - Parameter entry: An entry with the command `subscribe`.
    /// - Returns: The messages, after the peer has confirmed the subscription.
    /// - Throws: `WaybillError`: `invalidEntry` for any other command; otherwise as ``request(_:)``.
    public func messages(_ entry: Entry) async throws -> Messages<Message> {
        try await runner.messages(of: makeRequest(entry, for: .messages))
    }

    // Disfavored as `request(_:as:)` is: where both forms fit, the one above is meant.
    /// Subscribes as an entry says, and decodes each message.
    ///
    /// - Parameters:
    ///   - entry: An entry with the command `subscribe`.
    ///   - type: The type of each message: `Message`; `String`, `Data` or `[UInt8]`, the body as it is; or a type that
    ///     one of the provider's decoders makes, such as every `Decodable` type with the JSON decoder.
    /// - Returns: The values, after the peer has confirmed the subscription. A message that cannot be decoded is thrown
    ///   in its place and ends nothing: see ``Messages``.
    /// - Throws: As ``messages(_:)``. A type that no decoder makes is `invalidEntry`, before anything is sent.
    @_disfavoredOverload
    public func messages<Value: Sendable>(
        _ entry: Entry,
        as type: Value.Type = Value.self
    ) async throws -> Messages<Value> {
        if type == Message.self {
            // The same type under another name: no message is cast.
            let messages: any Sendable = try await self.messages(entry)
            if let messages = messages as? Messages<Value> { return messages }
        }
        let request = try makeRequest(entry, for: .messages)
        let decoding = decoding
        try decoding.check(type, request)
        return try await runner.messages(of: request) { message throws(WaybillError) in
            try decoding.decode(type, from: message)
        }
    }

    /// Every message that arrives at the transport from now on, also without a subscription of this provider.
    ///
    /// The interceptors see each message, with a context that names no topic. The stream acknowledges nothing and never
    /// stops reading from the peer. It outlives connections, and ends when the transport is shut down.
    ///
    /// - Parameter policy: What happens when messages arrive faster than the consumer takes them; `holdBack` is
    ///   `unsupported`.
    /// - Returns: The messages; over MQTT, replies to requests are among them.
    /// - Throws: `unsupported`, `shutDown`.
    public func allMessages(
        _ policy: BufferPolicy = BufferPolicy(.dropOldest)
    ) throws(WaybillError) -> Messages<Message> {
        try runner.allMessages(policy)
    }

    // MARK: Parts

    func makeRequest(
        _ entry: Entry,
        for answer: RequestAnswer
    ) throws(WaybillError) -> Request {
        try Request.making(entry, for: answer, encoders: runner.configuration.encoders)
    }

    var decoding: ResponseDecoding { runner.decoding }
}
