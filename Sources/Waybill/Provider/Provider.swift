import WireCore

/// Turns entries into requests and messages into values.
///
/// A value: copies share the transport, and several providers with different entry types may share one
/// transport and its connection. Everything runs on the caller's actor; a call from the main actor does
/// not hop.
public struct Provider<Entry: EntryType>: Sendable {
    let transport: any Transport
    let configuration: ProviderConfiguration
    var chain = InterceptorChain()
    var logger: (any WireLogger)?
    /// That of the transport, so that all providers of one report to the same observers.
    private let eventSource: TransportEventSource
    private let disconnects = DisconnectSignal()

    /// Makes a provider.
    ///
    /// - Parameters:
    ///   - transport: What carries the requests.
    ///   - configuration: Decoders and clock.
    public init(
        transport: some Transport,
        configuration: ProviderConfiguration = ProviderConfiguration()
    ) {
        self.transport = transport
        self.configuration = configuration
        eventSource = transport.events.source ?? TransportEventSource()
    }

    /// The same provider with more interceptors, behind those it has.
    public func intercepted(_ interceptors: any Interceptor...) -> Self {
        var copy = self
        copy.chain.append(interceptors, observing: eventSource)
        return copy
    }

    /// The same provider, showing requests, receipts, messages and failures to a logger.
    public func logged(_ logger: some WireLogger) -> Self {
        var copy = self
        copy.logger = logger
        return copy
    }

    /// The states of the transport's connection.
    public var states: ConnectionStates { transport.states }

    /// What happens on the transport, with this provider's retries and tokens among it.
    public var events: TransportEvents { eventSource.events }

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
        let request = try Request(entry)
        if chain.isEmpty, logger == nil {
            try refuseSubscription(request)
            if case .disconnect = request.command { disconnects.send() }
            return try await transport.perform(request)
        }
        return try await perform(request)
    }

    /// Does what an entry says and decodes the peer's reply.
    ///
    /// - Parameters:
    ///   - entry: Any entry but a subscription.
    ///   - type: What the reply is; `String`, `Data` and `[UInt8]` take the body as it is.
    /// - Returns: The reply.
    /// - Throws: As ``request(_:)``; `unsupported` where the transport has no replies, `decodingFailed`.
    public func request<Reply: Decodable & Sendable>(
        _ entry: Entry,
        as type: Reply.Type = Reply.self
    ) async throws -> Reply {
        try decoding.decode(type, from: try await reply(to: entry))
    }

    /// Does what an entry says and returns the peer's reply as it is.
    ///
    /// - Parameters:
    ///   - entry: Any entry but a subscription.
    ///   - type: `Message`.
    /// - Returns: The reply.
    /// - Throws: As ``request(_:)``; `unsupported` where the transport has no replies.
    public func request(_ entry: Entry, as type: Message.Type) async throws -> Message {
        try await reply(to: entry)
    }

    private func reply(to entry: Entry) async throws -> Message {
        let request = try Request(entry, expectsReply: true)
        let receipt = try await perform(request)
        guard let reply = receipt.reply else {
            throw WaybillError(
                .decodingFailed,
                "the peer sent no reply",
                topic: request.topic,
                command: request.command.name
            )
        }
        return try await chain.receive(reply, context: context(of: request))
    }

    private func perform(_ request: Request) async throws -> Receipt {
        try refuseSubscription(request)
        return try await withRetries(request) { adapted in
            log(.request, .outbound, "\(adapted)", byteCount: adapted.body.count)
            let receipt = try await transport.perform(adapted)
            if logger != nil {
                let reason = receipt.reason.map { ": \($0)" } ?? ""
                log(.receipt, .inbound, "confirmed \(adapted.command.name)\(reason)")
            }
            return receipt
        }
    }

    private func refuseSubscription(_ request: Request) throws(WaybillError) {
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
        guard !chain.isEmpty || logger != nil else { return messages }
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
        let (messages, context) = try await subscription(entry)
        let decoding = decoding
        return Messages<Value>(
            handle: messages.handle,
            intercept: chain.isEmpty && logger == nil ? nil : interception(context)
        ) { message throws(WaybillError) in
            try decoding.decode(type, from: message)
        }
    }

    private func subscription(
        _ entry: Entry
    ) async throws -> (Messages<Message>, InterceptorContext) {
        let request = try Request(entry)
        guard case .subscribe = request.command else {
            throw WaybillError(
                .invalidEntry,
                "only a subscription gives messages: ask for request(_:)",
                topic: request.topic,
                command: request.command.name
            )
        }
        let messages = try await withRetries(request) { adapted in
            log(.request, .outbound, "\(adapted)")
            return try await transport.subscribe(adapted)
        }
        return (messages, context(of: request))
    }

    private func interception(
        _ context: InterceptorContext
    ) -> @Sendable (Message) async throws -> Message {
        { [chain, logger] message in
            logger?.log(
                WireRecord(
                    kind: .message,
                    direction: .inbound,
                    text: "\(message)",
                    byteCount: message.body.count
                )
            )
            return try await chain.receive(message, context: context)
        }
    }

    // MARK: Shared

    private func context(of request: Request) -> InterceptorContext {
        InterceptorContext(request, RequestMemory(disconnects, eventSource))
    }

    var decoding: ResponseDecoding { ResponseDecoding(decoders: configuration.decoders) }

    private func log(
        _ kind: WireRecord.Kind,
        _ direction: WireRecord.Direction,
        _ text: @autoclosure () -> String,
        byteCount: Int = 0
    ) {
        logger?.log(
            WireRecord(kind: kind, direction: direction, text: text(), byteCount: byteCount)
        )
    }

    /// Runs the chain and `body`, again for as long as an interceptor says so.
    private func withRetries<Result>(
        _ original: Request,
        _ body: (Request) async throws -> Result
    ) async throws -> Result {
        var signal = disconnects
        if case .disconnect = original.command {
            disconnects.send()
            // Another one at the same time does not stop it.
            signal = DisconnectSignal()
        }
        var context = InterceptorContext(original, RequestMemory(signal, eventSource))
        while true {
            do {
                let adapted = try await chain.execute(original, context: context)
                guard !context.memory.isDisconnected else { throw Self.disconnected }
                let result = try await body(adapted)
                context.memory.noteSuccess()
                return result
            } catch var error as WaybillError {
                error.attempt = context.attempt
                error.topic = error.topic ?? original.topic
                error.command = error.command ?? original.command.name
                log(.failure, .inbound, "\(error)")
                // Another attempt would bring back a connection that nobody wants.
                guard !context.memory.isDisconnected else { throw error }
                let delay = try await delayBeforeRetry(original, after: error, context)
                let next = context.attempt + 1
                eventSource.report(
                    .retrying(original, attempt: next, delay: delay, after: error)
                )
                try await sleep(for: delay, context.memory)
                guard !context.memory.isDisconnected else { throw error }
                context.attempt += 1
            }
        }
    }

    /// How long to wait before the next attempt.
    /// - Throws: The error that the call fails with when there is to be none.
    private func delayBeforeRetry(
        _ request: Request,
        after error: WaybillError,
        _ context: InterceptorContext
    ) async throws -> Duration {
        guard !chain.isEmpty else { throw error }
        switch await chain.retry(request, after: error, context: context) {
        case .noOpinion, .doNotRetry: throw error
        case .doNotRetryWithError(let other): throw InterceptorChain.fold(other, context)
        case .retry(let count, let delay):
            guard context.attempt <= count, !error.mayHaveArrived || request.mayBeRepeated else {
                throw error
            }
            return delay
        }
    }

    private static var disconnected: WaybillError {
        WaybillError(.notConnected, "disconnected before it was sent")
    }

    private func sleep(for delay: Duration, _ memory: RequestMemory) async throws {
        try Task.checkCancellation()
        guard delay > .zero else { return }
        let clock = configuration.clock
        // A clock's sleep only ends early when its task is cancelled: one of its own, since disconnecting
        // ends it, too.
        let sleeping = Task { @concurrent in _ = try? await clock.sleep(for: delay) }
        await memory.endingAtDisconnect({ sleeping.cancel() }) {
            await withTaskCancellationHandler {
                await sleeping.value
            } onCancel: {
                sleeping.cancel()
            }
        }
        try Task.checkCancellation()
    }
}

extension Request {
    /// Whether doing it twice does no harm.
    fileprivate var mayBeRepeated: Bool {
        guard case .send(let options) = command else { return true }
        // The protocol tells one message from its repetition, but whoever answers sees two requests.
        return options.isIdempotent || (options.qos > .atMostOnce && !expectsReply)
    }
}
