/// What stands between a provider and its transport: its interceptors, its logger and what they report to.
///
/// It does not hold the transport, so that a connection can keep it without keeping itself alive.
final class Interception: Sendable {
    let chain: InterceptorChain
    let logger: (any WireLogger)?
    /// What is left out of requests; nil where everything unsupported fails.
    private let omitted: OmittedOptions?
    /// The transport's source of events: all providers of one transport report there.
    let eventSource: TransportEventSource
    private let clock: any Clock<Duration>
    /// The time since the interception was made, by the provider's clock.
    let elapsed: @Sendable () -> Duration
    private let disconnects: DisconnectSignal

    init(
        chain: InterceptorChain = InterceptorChain(),
        logger: (any WireLogger)? = nil,
        omitted: OmittedOptions? = nil,
        eventSource: TransportEventSource,
        clock: any Clock<Duration>,
        disconnects: DisconnectSignal
    ) {
        self.chain = chain
        self.logger = logger
        self.omitted = omitted
        self.eventSource = eventSource
        self.clock = clock
        elapsed = clock.elapsedSinceNow()
        self.disconnects = disconnects
    }

    /// The same with more interceptors, behind the present ones.
    func intercepted(_ interceptors: [any Interceptor]) -> Interception {
        var chain = chain
        chain.append(interceptors)
        return copy(chain: chain, logger: logger, omitted: omitted)
    }

    /// The same with a logger.
    func logged(_ logger: any WireLogger) -> Interception {
        copy(chain: chain, logger: logger, omitted: omitted)
    }

    /// The same, leaving out what the transport does not support.
    func whenUnsupported(_ policy: UnsupportedPolicy) -> Interception {
        let omitted = policy.ignored.isEmpty ? nil : OmittedOptions(policy)
        return copy(chain: chain, logger: logger, omitted: omitted)
    }

    private func copy(
        chain: InterceptorChain,
        logger: (any WireLogger)?,
        omitted: OmittedOptions?
    ) -> Interception {
        Interception(
            chain: chain,
            logger: logger,
            omitted: omitted,
            eventSource: eventSource,
            clock: clock,
            disconnects: disconnects
        )
    }

    /// Whether requests pass as they are.
    var isPlain: Bool { chain.isEmpty && logger == nil && omitted == nil }

    /// Ends the waits of requests that need a token or their next attempt.
    func noteDisconnect() {
        disconnects.send()
    }

    /// What interceptors learn about a request at its first attempt.
    func context(of request: Request) -> InterceptorContext {
        InterceptorContext(request, RequestMemory(disconnects))
    }

    /// The context of a request to disconnect, which another one at the same time does not stop.
    func contextOfDisconnect(_ request: Request) -> InterceptorContext {
        disconnects.send()
        return InterceptorContext(request, RequestMemory(DisconnectSignal(eventSource)))
    }

    /// Lets the interceptors adapt an entry's request.
    ///
    /// - Parameters:
    ///   - original: The entry's request.
    ///   - context: Which attempt it is.
    /// - Returns: The request to send, which carries the interceptors for a connection that is made for it.
    /// - Throws: `notConnected` after a `disconnect`; what an interceptor throws.
    @inline(__always)
    func adapted(_ original: Request, _ context: InterceptorContext) async throws -> Request {
        var request = original
        try await chain.adapt(&request, context: context)
        if let policy = original.retry { try await policy.adapt(&request, context: context) }
        omitted?.apply(to: &request, context.memory)
        guard !context.memory.isDisconnected else { throw Self.disconnected }
        if !chain.isEmpty || omitted != nil {
            request.chain = RequestChain(self, original, context)
        }
        return request
    }

    private static var disconnected: WaybillError {
        WaybillError(.notConnected, "disconnected before it was sent")
    }

    // MARK: Retries

    /// Waits until the next attempt is due, which the context then tells of.
    ///
    /// - Parameters:
    ///   - original: The entry's request.
    ///   - error: Why the attempt failed.
    ///   - context: Which attempt it was.
    /// - Throws: The error that the call fails with when there is no further attempt.
    func waitForRetry(
        _ original: Request,
        after error: WaybillError,
        _ context: inout InterceptorContext
    ) async throws {
        // Its attempts were counted, and its failure was told, where it was decided.
        guard !error.isDecided else { throw error }
        if let omitted, omitted.learn(from: error, original, context.memory) { return }
        var error = error
        error.attempt = context.attempt
        error.topic = error.topic ?? original.topic
        error.command = error.command ?? original.command.name
        log(.failure, .inbound, "\(error)")
        // Another attempt would bring back a connection that the app has closed.
        guard !context.memory.isDisconnected else { throw error }
        let delay = try await delayBeforeRetry(original, after: error, context)
        let next = context.attempt + 1
        eventSource.report(.retrying(original, attempt: next, delay: delay, after: error))
        try await sleep(for: delay, context.memory)
        guard !context.memory.isDisconnected else { throw error }
        context.attempt = next
    }

    /// How long to wait before the next attempt.
    /// - Throws: The error that the call fails with when there is no further attempt.
    private func delayBeforeRetry(
        _ request: Request,
        after error: WaybillError,
        _ context: InterceptorContext
    ) async throws -> Duration {
        switch await decision(request, after: error, context) {
        case .noOpinion, .doNotRetry: throw error
        case .doNotRetryWithError(let other): throw InterceptorChain.fold(other, context)
        case .retry(let count, let delay):
            guard context.attempt <= count, !error.mayHaveArrived || request.mayBeRepeated else {
                throw error
            }
            return delay
        }
    }

    /// The decision of the entry's own policy, or else that of the interceptors.
    private func decision(
        _ request: Request,
        after error: WaybillError,
        _ context: InterceptorContext
    ) async -> RetryDecision {
        if let policy = request.retry {
            let decision = await policy.retry(request, after: error, context: context)
            guard case .noOpinion = decision else { return decision }
            // The interceptors decide about other errors alone: the entry's attempts are used up.
            if policy.covers(request, error) { return .doNotRetry }
        }
        return await chain.retry(request, after: error, context: context)
    }

    private func sleep(for delay: Duration, _ memory: RequestMemory) async throws {
        try Task.checkCancellation()
        guard delay > .zero else { return }
        let clock = clock
        // A clock's sleep ends early only when its task is cancelled. It has a task of its own, since disconnecting
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

    // MARK: Logging

    func log(
        _ kind: WireRecord.Kind,
        _ direction: WireRecord.Direction,
        _ text: @autoclosure () -> String,
        body: Payload = Payload()
    ) {
        guard let logger else { return }
        let record = WireRecord(
            kind: kind,
            direction: direction,
            text: text(),
            byteCount: body.count,
            body: logger.bodies == .hidden || body.isEmpty ? nil : body
        )
        logger.log(record)
    }
}

extension Clock where Duration == Swift.Duration {
    /// A stopwatch that begins now.
    func elapsedSinceNow() -> @Sendable () -> Swift.Duration {
        let start = now
        return { start.duration(to: self.now) }
    }
}

extension Request {
    /// Whether doing it twice does no harm.
    fileprivate var mayBeRepeated: Bool {
        guard case .send(let options) = command else { return true }
        // The protocol tells a message from its repetition, but the service that answers sees two requests.
        return options.isIdempotent || (options.qos > .atMostOnce && !expectsReply)
    }
}
