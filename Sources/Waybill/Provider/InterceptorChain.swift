/// The interceptors of a provider, in order.
struct InterceptorChain: Sendable {
    private var interceptors: [any Interceptor] = []
    /// The interceptors that receive receipts.
    private var receiptInterceptors: [any ReceiptInterceptor] = []

    var isEmpty: Bool { interceptors.isEmpty }

    /// Whether there is an interceptor that receives receipts.
    var seesReceipts: Bool { !receiptInterceptors.isEmpty }

    /// Adds interceptors after the present ones.
    mutating func append(_ new: [any Interceptor]) {
        interceptors += new
        receiptInterceptors += new.compactMap { $0 as? any ReceiptInterceptor }
    }

    /// Passes a receipt to the interceptors that receive receipts, in reverse order.
    func confirm(
        _ receipt: Receipt,
        of request: Request,
        after duration: Duration,
        context: InterceptorContext
    ) {
        for interceptor in receiptInterceptors.reversed() {
            interceptor.confirm(receipt, of: request, after: duration, context: context)
        }
    }

    /// Lets each interceptor adapt the request in place, in order.
    ///
    /// Inlined: a call that may suspend costs as much as the work of an interceptor.
    @inline(__always)
    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        do {
            for interceptor in interceptors {
                try await interceptor.adapt(&request, context: context)
            }
        } catch {
            throw Self.fold(error, context)
        }
    }

    /// Lets each interceptor adapt the message, in reverse order.
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

    /// The token interceptors alone.
    var tokensOnly: InterceptorChain {
        var chain = InterceptorChain()
        chain.append(interceptors.filter { $0 is TokenInterceptor })
        return chain
    }

    /// Turns an interceptor's error into the error of the call; the only place that wraps foreign errors.
    static func fold(_ error: any Error, _ context: InterceptorContext) -> any Error {
        if error is WaybillError { return error }
        // The cancellation of another task, for which an interceptor waited, is no cancellation of this call.
        if error is CancellationError, Task.isCancelled { return error }
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
