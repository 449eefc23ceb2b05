/// Carries out the requests of a provider: all that does not depend on the type of its entries.
///
/// Apart from ``Provider``, so that it is compiled for its types once, and a call passes on one reference.
final class RequestRunner: Sendable {
    let transport: any Transport
    let configuration: ProviderConfiguration
    let interception: Interception
    /// Shows events to the interceptors that want to see them, as long as the provider or one of its subscriptions lives.
    let observations: [EventRegistry.Registration]
    /// What makes values of replies and messages.
    let decoding: ResponseDecoding
    /// Whether nothing stands between the caller and the transport.
    let isPlain: Bool
    /// The transport, if it takes requests over without making their callers wait.
    let immediate: (any ImmediateTransport)?
    /// The entries that were enqueued.
    let queue: RequestQueue

    convenience init(transport: any Transport, configuration: ProviderConfiguration) {
        let eventSource = transport.events.source ?? TransportEventSource()
        self.init(
            transport: transport,
            configuration: configuration,
            interception: Interception(
                eventSource: eventSource,
                clock: configuration.clock,
                disconnects: DisconnectSignal(eventSource)
            )
        )
    }

    private init(
        transport: any Transport,
        configuration: ProviderConfiguration,
        interception: Interception,
        observations: [EventRegistry.Registration] = []
    ) {
        self.transport = transport
        self.configuration = configuration
        self.interception = interception
        self.observations = observations
        decoding = ResponseDecoding(decoders: configuration.decoders)
        isPlain = interception.isPlain && configuration.errorType == nil
        immediate = transport as? any ImmediateTransport
        queue = RequestQueue(configuration)
    }

    /// The same with more interceptors, behind the present ones.
    func intercepted(_ interceptors: [any Interceptor]) -> RequestRunner {
        let observers = interceptors.compactMap { $0 as? any EventInterceptor }
        var observations = observations
        if !observers.isEmpty {
            observations.append(
                interception.eventSource.registry.observe { event in
                    for observer in observers { observer.observe(event) }
                }
            )
        }
        return RequestRunner(
            transport: transport,
            configuration: configuration,
            interception: interception.intercepted(interceptors),
            observations: observations
        )
    }

    /// The same with a logger.
    func logged(_ logger: any WireLogger) -> RequestRunner {
        RequestRunner(
            transport: transport,
            configuration: configuration,
            interception: interception.logged(logger),
            observations: observations
        )
    }

    /// The same, leaving out what the transport does not support.
    func whenUnsupported(_ policy: UnsupportedPolicy) -> RequestRunner {
        RequestRunner(
            transport: transport,
            configuration: configuration,
            interception: interception.whenUnsupported(policy),
            observations: observations
        )
    }

    /// Ends the waits of other requests, where this one disconnects.
    func noteDisconnect(_ request: Request) {
        guard case .disconnect = request.command else { return }
        interception.noteDisconnect()
    }

    /// Runs the chain and has the transport perform the request, again for as long as an interceptor says so.
    func perform(_ original: Request) async throws -> Receipt {
        try await perform(original, begin(original))
    }

    /// Goes on with a request at the attempt that the context tells of.
    func perform(_ original: Request, _ first: InterceptorContext) async throws -> Receipt {
        let interception = interception
        var context = first
        while true {
            do {
                let begun = interception.chain.seesReceipts ? interception.elapsed() : .zero
                let request = try await interception.adapted(original, context)
                interception.log(
                    .request,
                    .outbound,
                    "\(request)",
                    body: request.body
                )
                return try await performOnce(request, context, begun)
            } catch let error as WaybillError {
                let error = configuration.withServiceError(error)
                try await interception.waitForRetry(original, after: error, &context)
            }
        }
    }

    /// Has the transport perform a request that the interceptors have adapted.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - context: Which attempt it is.
    ///   - begun: When the interceptors began with it, by their clock.
    /// - Returns: What the peer has confirmed.
    /// - Throws: What the transport throws.
    @inline(__always)
    func performOnce(
        _ request: Request,
        _ context: InterceptorContext,
        _ begun: Duration
    ) async throws -> Receipt {
        let receipt = try await transport.perform(request)
        noteReceipt(receipt, of: request, context, begun)
        return receipt
    }

    /// Tells the interceptors, the log and the budgets of retries that a request is confirmed.
    ///
    /// - Parameters:
    ///   - receipt: What the peer has confirmed.
    ///   - request: The request, as the interceptors left it.
    ///   - context: Which attempt it was.
    ///   - begun: When the interceptors began with it, by their clock.
    @inline(__always)
    func noteReceipt(
        _ receipt: Receipt,
        of request: Request,
        _ context: InterceptorContext,
        _ begun: Duration
    ) {
        if interception.chain.seesReceipts {
            interception.chain.confirm(
                receipt,
                of: request,
                after: interception.elapsed() - begun,
                context: context
            )
        }
        if interception.logger != nil {
            let reason = receipt.reason.map { ": \($0)" } ?? ""
            interception.log(
                .receipt,
                .inbound,
                "confirmed \(request.command.name)\(reason)",
                body: receipt.reply?.body ?? Payload()
            )
        }
        context.memory.noteSuccess()
    }

    /// Runs the chain and has the transport subscribe, again for as long as an interceptor says so.
    func subscribe(_ original: Request) async throws -> Messages<Message> {
        let interception = interception
        var context = begin(original)
        while true {
            do {
                let request = try await interception.adapted(original, context)
                interception.log(.request, .outbound, "\(request)")
                let messages = try await transport.subscribe(request)
                context.memory.noteSuccess()
                return messages
            } catch let error as WaybillError {
                let error = configuration.withServiceError(error)
                try await interception.waitForRetry(original, after: error, &context)
            }
        }
    }

    private func begin(_ original: Request) -> InterceptorContext {
        guard case .disconnect = original.command else { return interception.context(of: original) }
        return interception.contextOfDisconnect(original)
    }
}
