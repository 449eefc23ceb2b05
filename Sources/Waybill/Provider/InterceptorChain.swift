/// Interceptors one after another.
struct InterceptorChain: Sendable {
    var interceptors: [any Interceptor] = []

    var isEmpty: Bool { interceptors.isEmpty }

    /// Lets each adapt the request, in order.
    func execute(_ request: Request, context: InterceptorContext) async throws -> Request {
        var adapted = request
        for interceptor in interceptors {
            do {
                adapted = try await interceptor.execute(adapted, context: context)
            } catch {
                throw Self.fold(error, context)
            }
        }
        return adapted
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
