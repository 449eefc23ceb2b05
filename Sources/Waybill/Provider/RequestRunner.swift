/// Performs the requests of a provider: everything that does not depend on the type of its entries.
///
/// Separate from ``Provider``, so that it is compiled once and a call passes a single reference.
final class RequestRunner: Sendable {
    let transport: any Transport
    let configuration: ProviderConfiguration
    let interception: Interception
    /// The event registrations of interceptors, which last as long as the provider or one of its subscriptions.
    let observations: [EventRegistry.Registration]
    let decoding: ResponseDecoding
    /// Whether requests go to the transport without interceptors, logger or omitted options.
    let isPlain: Bool
    /// The transport, if it can take requests without making the caller wait.
    let immediate: (any ImmediateTransport)?
    let queue: RequestQueue

    convenience init(transport: any Transport, configuration: ProviderConfiguration) {
        let eventSource = transport.events.source ?? TransportEventSource()
        self.init(
            transport: transport,
            configuration: configuration,
            interception: Interception(
                eventSource: eventSource,
                keepsSends: (transport as? any StoringTransport)?.storesSends ?? false,
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

    /// A copy with more interceptors after the present ones.
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
        return copy(interception.intercepted(interceptors), observations)
    }

    func logged(_ logger: any WireLogger) -> RequestRunner {
        copy(interception.logged(logger), observations)
    }

    /// A copy that leaves out options that the transport does not support.
    func whenUnsupported(_ policy: UnsupportedPolicy) -> RequestRunner {
        copy(interception.whenUnsupported(policy), observations)
    }

    private func copy(
        _ interception: Interception,
        _ observations: [EventRegistry.Registration]
    ) -> RequestRunner {
        RequestRunner(
            transport: transport,
            configuration: configuration,
            interception: interception,
            observations: observations
        )
    }

    /// Ends the waits of other requests if this one is a disconnect.
    private func noteDisconnect(_ request: Request) {
        guard request.command.code == .disconnect else { return }
        interception.noteDisconnect()
    }

    /// Performs a request; without interceptors and retries, the transport gets it at once.
    func perform(_ request: Request) async throws -> Receipt {
        guard isPlain, !request.hasRetry else { return try await performAdapted(request) }
        noteDisconnect(request)
        do {
            return try await transport.perform(request)
        } catch let error as WaybillError {
            throw error.about(topic: request.topic, command: request.command.name)
        }
    }

    /// Runs the interceptors and performs the request, and repeats that as long as an interceptor decides to retry.
    func performAdapted(_ original: Request) async throws -> Receipt {
        try await performAdapted(original, begin(original))
    }

    /// Continues a request at the attempt of a context.
    func performAdapted(_ original: Request, _ first: InterceptorContext) async throws -> Receipt {
        let interception = interception
        var context = first
        var mayHaveArrived = false
        while true {
            do {
                let begun = interception.chain.seesReceipts ? interception.elapsed() : .zero
                let request = try await interception.adapted(original, context)
                interception.log(request, body: request.body)
                return try await performOnce(request, context, begun)
            } catch let error as WaybillError {
                let error = configuration.withServiceError(error)
                mayHaveArrived = mayHaveArrived || error.mayHaveArrived
                do {
                    try await interception.waitForRetry(original, after: error, &context)
                } catch let error as WaybillError {
                    // What an earlier attempt has sent may still arrive.
                    throw mayHaveArrived ? error.arriving(true) : error
                }
            }
        }
    }

    /// Performs a request that the interceptors have adapted.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - context: The context with the number of the attempt.
    ///   - begun: The start of the interceptors' work, by the provider's clock.
    /// - Returns: The receipt.
    /// - Throws: The error of the transport.
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

    /// Reports the receipt of a request to the interceptors, the log and the retry budgets.
    ///
    /// - Parameters:
    ///   - receipt: The receipt.
    ///   - request: The request, after the interceptors.
    ///   - context: The context with the number of the attempt.
    ///   - begun: The start of the interceptors' work, by the provider's clock.
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
                name: request.command.name,
                topic: request.topic?.withoutQuery,
                "confirmed \(request.command.name)\(reason)",
                body: receipt.reply?.body ?? Payload()
            )
        }
        context.memory.noteSuccess()
    }

    /// Runs the interceptors and subscribes, and repeats that as long as an interceptor decides to retry.
    func subscribe(_ original: Request) async throws -> Messages<Message> {
        let interception = interception
        var context = begin(original)
        while true {
            do {
                let request = try await interception.adapted(original, context)
                interception.log(request)
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
        guard original.command.code == .disconnect else {
            return interception.context(of: original)
        }
        return interception.contextOfDisconnect(original)
    }
}
