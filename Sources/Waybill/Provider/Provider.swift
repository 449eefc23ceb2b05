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
        let request = try Request.making(entry, encoders: runner.configuration.encoders)
        try refuseSubscription(request)
        return try await perform(request)
    }

    func perform(_ request: Request) async throws -> Receipt {
        guard runner.isPlain, !request.hasRetry else {
            return try await runner.perform(request)
        }
        runner.noteDisconnect(request)
        do {
            return try await runner.transport.perform(request)
        } catch let error as WaybillError {
            throw error.about(topic: request.topic, command: request.command.name)
        }
    }

    var transport: any Transport { runner.transport }

    /// Ends the waits of requests for tokens and next attempts.
    func endWaits() {
        runner.interception.noteDisconnect()
    }

    /// Performs an entry and decodes the peer's reply.
    ///
    /// - Parameters:
    ///   - entry: An entry with the command `send`.
    ///   - type: The type of the reply; `String`, `Data` and `[UInt8]` take the body as it is.
    /// - Returns: The reply.
    /// - Throws: As ``request(_:)``; `decodingFailed`. Before anything is sent, `unsupported` for a command without a
    ///   reply and `invalidEntry` for a type that no decoder makes.
    public func request<Reply: Decodable & Sendable>(
        _ entry: Entry,
        as type: Reply.Type = Reply.self
    ) async throws -> Reply {
        let request = try replyRequest(entry)
        try decoding.checkCodable(type, request)
        let reply = try await reply(to: request)
        do {
            return try decoding.decode(type, from: reply)
        } catch {
            throw runner.configuration.serviceFailure(in: reply, to: request, error)
        }
    }

    func refuseSubscription(_ request: Request) throws(WaybillError) {
        guard case .subscribe = request.command else { return }
        throw WaybillError(
            .invalidEntry,
            "a subscription gives messages, not a receipt: ask for messages(_:)",
            topic: request.topic,
            command: request.command.name
        )
    }

    // MARK: Subscriptions

    /// Subscribes as an entry says.
    ///
    /// - Parameter entry: An entry with the command `subscribe`.
    /// - Returns: The messages, after the peer has confirmed the subscription.
    /// - Throws: `WaybillError`: `invalidEntry` for any other command; otherwise as ``request(_:)``.
    public func messages(_ entry: Entry) async throws -> Messages<Message> {
        let (messages, context) = try await subscription(entry)
        guard !runner.isPlain else { return messages }
        return Messages(
            handle: messages.handle,
            intercept: interception(context),
            decode: messages.decode
        )
    }

    /// Subscribes as an entry says, and decodes each message.
    ///
    /// - Parameters:
    ///   - entry: An entry with the command `subscribe`.
    ///   - type: The type of each message; `String`, `Data` and `[UInt8]` take the body as it is.
    /// - Returns: The values, after the peer has confirmed the subscription. A message that cannot be decoded is thrown
    ///   in its place and ends nothing: see ``Messages``.
    /// - Throws: As ``messages(_:)``.
    public func messages<Value: Decodable & Sendable>(
        _ entry: Entry,
        as type: Value.Type = Value.self
    ) async throws -> Messages<Value> {
        let decoding = decoding
        let (messages, context) = try await subscription(entry) {
            request throws(WaybillError) in try decoding.checkCodable(type, request)
        }
        return Messages<Value>(
            handle: messages.handle,
            intercept: runner.isPlain ? nil : interception(context)
        ) { message throws(WaybillError) in
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
        let messages = try runner.transport.allMessages(policy)
        guard !runner.isPlain else { return messages }
        let request = Request(topic: nil, command: .subscribe)
        return Messages(
            handle: messages.handle,
            intercept: interception(runner.interception.context(of: request)),
            decode: messages.decode
        )
    }

    func subscription(
        _ entry: Entry,
        check: (Request) throws(WaybillError) -> Void = { _ throws(WaybillError) in }
    ) async throws -> (Messages<Message>, InterceptorContext) {
        let request = try Request.making(entry, encoders: runner.configuration.encoders)
        guard case .subscribe = request.command else {
            throw WaybillError(
                .invalidEntry,
                "only a subscription gives messages: ask for request(_:)",
                topic: request.topic,
                command: request.command.name
            )
        }
        try check(request)
        let messages = try await runner.subscribe(request)
        messages.handle.come(
            from: MessageOrigin(topic: request.topic, events: runner.interception.eventSource)
        )
        return (messages, runner.interception.context(of: request))
    }

    func interception(
        _ context: InterceptorContext
    ) -> @Sendable (Message) async throws -> Message {
        { [interception = runner.interception, observations = runner.observations] message in
            // Keeps the interceptors that observe events alive as long as the subscription.
            _ = observations
            interception.log(.message, .inbound, "\(message)", body: message.body)
            return try await interception.chain.receive(message, context: context)
        }
    }

    var decoders: [any BodyDecoder] { runner.configuration.decoders }

    var decoding: ResponseDecoding { runner.decoding }
}
