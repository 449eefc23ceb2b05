/// Interceptors one after another.
struct InterceptorChain: Sendable {
    private var interceptors: [any Interceptor] = []
    /// What lets those observe who want to; kept as long as somebody uses the chain.
    private var registrations: [EventRegistry.Registration] = []

    var isEmpty: Bool { interceptors.isEmpty }

    /// Adds interceptors behind those that are there; those who want to, see the events of a source from now on.
    mutating func append(_ new: [any Interceptor], observing source: TransportEventSource) {
        interceptors += new
        let observers = new.compactMap { $0 as? any EventInterceptor }
        guard !observers.isEmpty else { return }
        registrations.append(
            source.registry.observe { event in
                for observer in observers { observer.observe(event) }
            }
        )
    }

    /// Lets each adapt the request, in order.
    ///
    /// Inlined, since a call that may suspend costs as much as what an interceptor does.
    @inline(__always)
    func execute(_ request: Request, context: InterceptorContext) async throws -> Request {
        guard let first = interceptors.first else { return request }
        do {
            // The first takes the original as it is: a copy of it would count references for nothing.
            var adapted = try await first.execute(request, context: context)
            for interceptor in interceptors.dropFirst() {
                adapted = try await interceptor.execute(adapted, context: context)
            }
            return adapted
        } catch {
            throw Self.fold(error, context)
        }
    }

    /// Lets each adapt the message, in reverse order.
    func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
        var adapted = message
        for interceptor in interceptors.reversed() {
            do {
                adapted = try await interceptor.receive(adapted, context: context)
            } catch {
                throw Self.fold(error, context)
            }
        }
        return adapted
    }

    /// The first decision other than `noOpinion`.
    func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        for interceptor in interceptors {
            let decision = await interceptor.retry(request, after: error, context: context)
            if case .noOpinion = decision { continue }
            return decision
        }
        return .noOpinion
    }

    /// The one place where foreign errors become ours.
    static func fold(_ error: any Error, _ context: InterceptorContext) -> any Error {
        if error is WaybillError || error is CancellationError { return error }
        return WaybillError(
            .interceptorFailed,
            "an interceptor failed",
            topic: context.topic,
            command: context.command,
            attempt: context.attempt,
            underlying: error
        )
    }
}
