/// Turns entries into requests and messages into values.
///
/// A value: copies share the transport, and several providers with different entry types may share one
/// transport and its connection. Everything runs on the caller's actor; a call from the main actor does
/// not hop. Of those that have nothing to wait for, each 256th lets others run.
public struct Provider<Entry: EntryType>: Sendable {
    private(set) var runner: RequestRunner

    /// Makes a provider.
    ///
    /// - Parameters:
    ///   - transport: What carries the requests.
    ///   - configuration: Decoders and clock.
    public init(
        transport: some Transport,
        configuration: ProviderConfiguration = ProviderConfiguration()
    ) {
        runner = RequestRunner(transport: transport, configuration: configuration)
    }

    /// The same provider with more interceptors, behind those it has.
    public func intercepted(_ interceptors: any Interceptor...) -> Self {
        var copy = self
        copy.runner = runner.intercepted(interceptors)
        return copy
    }

    /// The same provider, showing requests, receipts, messages and failures to a logger.
    public func logged(_ logger: some WireLogger) -> Self {
        var copy = self
        copy.runner = runner.logged(logger)
        return copy
    }

    /// The same provider with another runner.
    func changed(_ change: (RequestRunner) -> RequestRunner) -> Self {
        var copy = self
        copy.runner = change(runner)
        return copy
    }

    /// The states of the transport's connection.
    public var states: ConnectionStates { runner.transport.states }

    /// What happens on the transport, with this provider's retries and tokens among it.
    public var events: TransportEvents { runner.interception.eventSource.events }

    // MARK: Requests

    /// Does what an entry says.
    ///
    /// - Parameter entry: Any entry but a subscription.
    /// - Returns: When the peer has confirmed it, as far as the protocol confirms such a command.
    /// - Throws: `WaybillError`: `invalidEntry` for a subscription or without a needed topic,
    ///   `encodingFailed`, `interceptorFailed`, and what ``Transport/perform(_:)`` throws; or
    ///   `CancellationError`.
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

    /// Ends the waits for tokens and next attempts.
    func endWaits() {
        runner.interception.noteDisconnect()
    }

    /// Does what an entry says and decodes the peer's reply.
    ///
    /// - Parameters:
    ///   - entry: An entry with the command `send`.
    ///   - type: What the reply is; `String`, `Data` and `[UInt8]` take the body as it is.
    /// - Returns: The reply.
    /// - Throws: As ``request(_:)``; before anything is sent, `unsupported` for a command that has no reply and
    ///   `invalidEntry` for a type that no decoder makes; `decodingFailed`.
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

    /// Subscribes to what an entry says.
    ///
    /// - Parameter entry: An entry with the command `subscribe`.
    /// - Returns: The messages, once the peer has confirmed the subscription.
    /// - Throws: `WaybillError`: `invalidEntry` for any other command, and as ``request(_:)``.
    public func messages(_ entry: Entry) async throws -> Messages<Message> {
        let (messages, context) = try await subscription(entry)
        guard !runner.isPlain else { return messages }
        return Messages(
            handle: messages.handle,
            intercept: interception(context),
            decode: messages.decode
        )
    }

    /// Subscribes to what an entry says and decodes each message.
    ///
    /// - Parameters:
    ///   - entry: An entry with the command `subscribe`.
    ///   - type: What each message is; `String`, `Data` and `[UInt8]` take the body as it is.
    /// - Returns: The values, once the peer has confirmed the subscription. One that cannot be decoded
    ///   is thrown in its turn and ends nothing: see ``Messages``.
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

    /// Every message that comes to the transport from now on, whoever has subscribed to it and whether anybody has.
    ///
    /// The interceptors see each of them, with a context that names no topic. Whoever looks on acknowledges nothing and
    /// holds nobody up; the stream outlives connections, and ends when the transport is shut down.
    ///
    /// - Parameter policy: What happens when messages come faster than they are taken; holding back is `unsupported`.
    /// - Returns: The messages; over MQTT answers to requests are among them.
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
            // The observers among the interceptors live as long as the subscription.
            _ = observations
            interception.log(.message, .inbound, "\(message)", body: message.body)
            return try await interception.chain.receive(message, context: context)
        }
    }

    var decoders: [any BodyDecoder] { runner.configuration.decoders }

    var decoding: ResponseDecoding { runner.decoding }
}
