/// Carries out the requests of a provider: all that does not depend on the type of its entries.
///
/// Apart from ``Provider``, so that it is compiled for its types once, and a call passes on one reference.
final class RequestRunner: Sendable {
    let transport: any Transport
    let configuration: ProviderConfiguration
    let chain: InterceptorChain
    let logger: (any WireLogger)?
    /// That of the transport, so that all providers of one report to the same observers.
    let eventSource: TransportEventSource
    private let disconnects: DisconnectSignal

    convenience init(transport: any Transport, configuration: ProviderConfiguration) {
        let eventSource = transport.events.source ?? TransportEventSource()
        self.init(
            transport: transport,
            configuration: configuration,
            chain: InterceptorChain(),
            logger: nil,
            eventSource: eventSource,
            disconnects: DisconnectSignal(eventSource)
        )
    }

    private init(
        transport: any Transport,
        configuration: ProviderConfiguration,
        chain: InterceptorChain,
        logger: (any WireLogger)?,
        eventSource: TransportEventSource,
        disconnects: DisconnectSignal
    ) {
        self.transport = transport
        self.configuration = configuration
        self.chain = chain
        self.logger = logger
        self.eventSource = eventSource
        self.disconnects = disconnects
    }

    /// The same with more interceptors, behind those that are there.
    func intercepted(_ interceptors: [any Interceptor]) -> RequestRunner {
        var chain = chain
        chain.append(interceptors, observing: eventSource)
        return copy(chain: chain, logger: logger)
    }

    /// The same, showing what happens to a logger.
    func logged(_ logger: any WireLogger) -> RequestRunner {
        copy(chain: chain, logger: logger)
    }

    private func copy(chain: InterceptorChain, logger: (any WireLogger)?) -> RequestRunner {
        RequestRunner(
            transport: transport,
            configuration: configuration,
            chain: chain,
            logger: logger,
            eventSource: eventSource,
            disconnects: disconnects
        )
    }

    /// Whether nobody stands between the caller and the transport.
    var isPlain: Bool { chain.isEmpty && logger == nil }

    // MARK: Requests

    /// Tells those that wait for a token or the next attempt that somebody disconnects, where a request does.
    func noteDisconnect(_ request: Request) {
        guard case .disconnect = request.command else { return }
        disconnects.send()
    }

    /// Runs the chain and has the transport perform the request, again for as long as an interceptor says so.
    func perform(_ original: Request) async throws -> Receipt {
        var context = begin(original)
        while true {
            do {
                let adapted = try await chain.execute(original, context: context)
                guard !context.memory.isDisconnected else { throw Self.disconnected }
                log(.request, .outbound, "\(adapted)", byteCount: adapted.body.count)
                let receipt = try await transport.perform(adapted)
                if logger != nil {
                    let reason = receipt.reason.map { ": \($0)" } ?? ""
                    log(.receipt, .inbound, "confirmed \(adapted.command.name)\(reason)")
                }
                context.memory.noteSuccess()
                return receipt
            } catch let error as WaybillError {
                try await waitForRetry(original, after: error, &context)
            }
        }
    }

    /// Runs the chain and has the transport subscribe, again for as long as an interceptor says so.
    func subscribe(_ original: Request) async throws -> Messages<Message> {
        var context = begin(original)
        while true {
            do {
                let adapted = try await chain.execute(original, context: context)
                guard !context.memory.isDisconnected else { throw Self.disconnected }
                log(.request, .outbound, "\(adapted)")
                let messages = try await transport.subscribe(adapted)
                context.memory.noteSuccess()
                return messages
            } catch let error as WaybillError {
                try await waitForRetry(original, after: error, &context)
            }
        }
    }

    private func begin(_ original: Request) -> InterceptorContext {
        guard case .disconnect = original.command else { return context(of: original) }
        disconnects.send()
        // Another one at the same time does not stop it.
        return InterceptorContext(original, RequestMemory(DisconnectSignal(eventSource)))
    }

    /// What interceptors learn about a request at its first attempt.
    func context(of request: Request) -> InterceptorContext {
        InterceptorContext(request, RequestMemory(disconnects))
    }

    // MARK: Retries

    /// Waits until the next attempt is due, which the context then tells of.
    /// - Throws: The error that the call fails with when there is to be none.
    private func waitForRetry(
        _ original: Request,
        after error: WaybillError,
        _ context: inout InterceptorContext
    ) async throws {
        var error = error
        error.attempt = context.attempt
        error.topic = error.topic ?? original.topic
        error.command = error.command ?? original.command.name
        log(.failure, .inbound, "\(error)")
        // Another attempt would bring back a connection that nobody wants.
        guard !context.memory.isDisconnected else { throw error }
        let delay = try await delayBeforeRetry(original, after: error, context)
        let next = context.attempt + 1
        eventSource.report(.retrying(original, attempt: next, delay: delay, after: error))
        try await sleep(for: delay, context.memory)
        guard !context.memory.isDisconnected else { throw error }
        context.attempt = next
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

    // MARK: Logging

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
}

extension Request {
    /// Whether doing it twice does no harm.
    fileprivate var mayBeRepeated: Bool {
        guard case .send(let options) = command else { return true }
        // The protocol tells one message from its repetition, but whoever answers sees two requests.
        return options.isIdempotent || (options.qos > .atMostOnce && !expectsReply)
    }
}
