/// The layer between a provider and its transport: interceptors, logger and the source of events.
///
/// It does not hold the transport, so a connection can hold it without a cycle.
final class Interception: Sendable {
    let chain: InterceptorChain
    let logger: (any WireLogger)?
    /// The options to leave out of requests; nil if everything unsupported fails.
    let omitted: OmittedOptions?
    /// The transport's source of events; all providers of one transport report there.
    let eventSource: TransportEventSource
    /// Whether requests carry the entry's own send, because the transport stores it.
    let keepsSends: Bool
    private let clock: any Clock<Duration>
    /// Returns the time since the interception was made, by the provider's clock.
    let elapsed: @Sendable () -> Duration
    private let disconnects: DisconnectSignal

    init(
        chain: InterceptorChain = InterceptorChain(),
        logger: (any WireLogger)? = nil,
        omitted: OmittedOptions? = nil,
        eventSource: TransportEventSource,
        keepsSends: Bool = false,
        clock: any Clock<Duration>,
        disconnects: DisconnectSignal
    ) {
        self.chain = chain
        self.logger = logger
        self.omitted = omitted
        self.eventSource = eventSource
        self.keepsSends = keepsSends
        self.clock = clock
        elapsed = clock.elapsedSinceNow()
        self.disconnects = disconnects
    }

    /// A copy with more interceptors after the present ones.
    func intercepted(_ interceptors: [any Interceptor]) -> Interception {
        var chain = chain
        chain.append(interceptors)
        return copy(chain: chain, logger: logger, omitted: omitted)
    }

    func logged(_ logger: any WireLogger) -> Interception {
        copy(chain: chain, logger: logger, omitted: omitted)
    }

    /// A copy that leaves out options that the transport does not support.
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
            keepsSends: keepsSends,
            clock: clock,
            disconnects: disconnects
        )
    }

    /// Whether requests pass unchanged.
    var isPlain: Bool { chain.isEmpty && logger == nil && omitted == nil }

    /// Ends the waits of requests for a token or for their next attempt.
    func noteDisconnect() {
        disconnects.send()
    }

    /// The interceptors' context for the first attempt of a request.
    func context(of request: Request) -> InterceptorContext {
        InterceptorContext(request, RequestMemory(disconnects))
    }

    /// The context of a disconnect request; other disconnects at the same time do not stop it.
    func contextOfDisconnect(_ request: Request) -> InterceptorContext {
        disconnects.send()
        return InterceptorContext(request, RequestMemory(DisconnectSignal(eventSource)))
    }

    /// Lets the interceptors adapt an entry's request.
    ///
    /// - Parameters:
    ///   - original: The entry's request.
    ///   - context: The context with the number of the attempt.
    /// - Returns: The request to send; it carries the interceptors for a connection that is opened for it.
    /// - Throws: `notConnected` after a `disconnect`; the error of an interceptor.
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

    /// The errors that no interceptor and no policy is asked about.
    private static let faultsOfEntries: Set<WaybillError.Code> = [
        .unsupported, .invalidEntry, .encodingFailed,
    ]

    /// Waits until the next attempt is due, and counts it in the context.
    ///
    /// - Parameters:
    ///   - original: The entry's request.
    ///   - error: The error of the failed attempt.
    ///   - context: The context with the number of the failed attempt.
    /// - Throws: The call's error when there is no further attempt.
    func waitForRetry(
        _ original: Request,
        after error: WaybillError,
        _ context: inout InterceptorContext
    ) async throws {
        // Where the decision was made, the attempts were counted and the failure was reported.
        guard !error.isDecided else { throw error }
        if let omitted, omitted.learn(from: error, original, context.memory) { return }
        var error = error
        error.attempt = context.attempt
        error.topic = error.topic ?? original.topic
        error.command = error.command ?? original.command.name
        log(
            .failure,
            .inbound,
            name: error.command ?? "",
            topic: error.topic?.withoutQuery,
            "\(error)"
        )
        // The entry itself is at fault, so each further attempt would fail in the same way.
        guard !Self.faultsOfEntries.contains(error.code) else { throw error }
        // Another attempt would open a connection that the app has closed.
        guard !context.memory.isDisconnected else { throw error }
        let delay = try await delayBeforeRetry(original, after: error, context)
        let next = context.attempt + 1
        eventSource.report(.retrying(original, attempt: next, delay: delay, after: error))
        try await sleep(for: delay, context.memory)
        guard !context.memory.isDisconnected else { throw error }
        context.attempt = next
    }

    /// Asks the token interceptors for another token, because the server may have refused the present one.
    ///
    /// - Returns: Whether there is one; the attempt is then counted in the context.
    func replaceToken(
        _ original: Request,
        after error: WaybillError,
        _ context: inout InterceptorContext
    ) async -> Bool {
        let decision = await chain.tokensOnly.retry(original, after: error, context: context)
        guard case .retry = decision, !context.memory.isDisconnected else { return false }
        context.attempt += 1
        eventSource.report(
            .retrying(original, attempt: context.attempt, delay: .zero, after: error)
        )
        return true
    }

    /// The wait before the next attempt.
    ///
    /// - Throws: The call's error when there is no further attempt.
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
            // The policy covers this error and its attempts are used up; interceptors decide on other errors only.
            if policy.covers(request, error) { return .doNotRetry }
        }
        return await chain.retry(request, after: error, context: context)
    }

    private func sleep(for delay: Duration, _ memory: RequestMemory) async throws {
        try Task.checkCancellation()
        guard delay > .zero else { return }
        let clock = clock
        // A clock's sleep ends early only when its task is cancelled. It runs in a separate task, because a disconnect
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
        name: @autoclosure () -> String,
        topic: @autoclosure () -> String?,
        _ text: @autoclosure () -> String,
        body: Payload = Payload()
    ) {
        guard let logger else { return }
        var record = WireRecord(
            kind: kind,
            direction: direction,
            text: text(),
            byteCount: body.count,
            body: logger.bodies == .hidden || body.isEmpty ? nil : body
        )
        record.name = name()
        record.topic = topic()
        record.label = eventSource.label
        logger.log(record)
    }

    /// Shows a request to the logger, if there is one.
    func log(_ request: Request, body: Payload = Payload()) {
        log(
            .request,
            .outbound,
            name: request.command.name,
            topic: request.topic?.withoutQuery,
            "\(request)",
            body: body
        )
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
    /// Whether carrying it out twice does no harm.
    fileprivate var mayBeRepeated: Bool {
        guard command.code == .send else { return true }
        // The protocol can tell a message from its repetition, but the replying service sees two requests.
        return command.isSet(.idempotent)
            || (command.qos > .atMostOnce && !expectsReply && !command.isSet(.sentOnceOnly))
    }
}
