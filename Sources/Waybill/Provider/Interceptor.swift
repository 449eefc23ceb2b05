/// Adapts requests and received messages, and decides on retries.
///
/// Interceptors run in the order in which they were added, and each gets the result of the one before. Received
/// messages pass them in reverse order. Every method does nothing by default. An ``EventInterceptor`` also observes the
/// events of the transport.
public protocol Interceptor: Sendable {
    /// Adapts a request before it is sent; each attempt starts again from the entry's own request.
    ///
    /// Every CONNECT passes here: that of an entry, one that a transport sends on demand, and each one after a lost
    /// connection. So does each request for an event stream, also when the transport repeats it.
    ///
    /// - Parameters:
    ///   - request: The request from the interceptor before; change it in place.
    ///   - context: The command, the topic and the number of the attempt.
    /// - Throws: Any error; the call then fails. A `WaybillError` is thrown unchanged, any other error as
    ///   `interceptorFailed`. A transport tries again later to restore a lost connection if the error is retryable or
    ///   `interceptorFailed`, or if a token source could not be reached.
    func adapt(_ request: inout Request, context: InterceptorContext) async throws

    /// Adapts a message before it is decoded, or refuses it.
    ///
    /// - Parameters:
    ///   - message: The message from the interceptor after this one in the list.
    ///   - context: The command, the topic and the number of the attempt.
    /// - Returns: The message to pass on.
    /// - Throws: Any error; the consumer gets that error in the place of this message.
    func receive(_ message: Message, context: InterceptorContext) async throws -> Message

    /// Decides whether a failed request is retried; the first decision other than `noOpinion` counts.
    ///
    /// It is never asked about `unsupported`, `invalidEntry` and `encodingFailed`, which each attempt would meet again.
    ///
    /// For a CONNECT that a transport sends by itself, only a refusal by the server is passed here (`unauthorized`,
    /// `rejected`). The transport itself decides when to reconnect after a loss.
    ///
    /// - Parameters:
    ///   - request: The entry's original request.
    ///   - error: The error of the failed attempt.
    ///   - context: The command, the topic and the number of the failed attempt.
    /// - Returns: The decision.
    func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision
}

extension Interceptor {
    /// Changes nothing.
    public func adapt(_ request: inout Request, context: InterceptorContext) async throws {}

    /// Passes on the message unchanged.
    public func receive(
        _ message: Message,
        context: InterceptorContext
    ) async throws -> Message { message }

    /// Has no opinion.
    public func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision { .noOpinion }
}

/// An interceptor that also sees the receipt and the duration of each request, for measurements and audits.
///
/// The protocol is separate so that a provider without such an interceptor reads no clock and makes no further calls. A
/// hook around the whole call (`next`) would add a closure and a frame to each request.
public protocol ReceiptInterceptor: Interceptor {
    /// Reports that the peer has confirmed a request, before the call returns.
    ///
    /// The call may run on any thread, for enqueued entries on that of the connection: it should return soon.
    /// Subscriptions, and connections that a transport opens by itself, are reported as events and not here.
    ///
    /// - Parameters:
    ///   - receipt: The receipt of the request.
    ///   - request: The request as the last interceptor left it.
    ///   - duration: The time of the attempt, from the first interceptor to the receipt, by the provider's clock.
    ///   - context: The command, the topic and the number of the attempt.
    func confirm(
        _ receipt: Receipt,
        of request: Request,
        after duration: Duration,
        context: InterceptorContext
    )
}

/// The request that an interceptor's call belongs to.
public struct InterceptorContext: Sendable {
    /// The number of the attempt, from 1.
    public var attempt: Int
    /// The name of the request's command.
    public var command: String
    /// The topic of the request.
    public var topic: String?
    /// Whether the transport makes the request by itself, to restore a lost connection or event stream.
    public var isReconnection = false
    /// The memory of the package's own interceptors about the request, shared by all attempts.
    let memory: RequestMemory

    /// Makes a context, for the test of an interceptor.
    public init(attempt: Int = 1, command: String, topic: String? = nil) {
        self.attempt = attempt
        self.command = command
        self.topic = topic
        memory = RequestMemory(DisconnectSignal())
    }

    init(_ request: Request, _ memory: RequestMemory) {
        attempt = 1
        command = request.command.name
        topic = request.topic
        self.memory = memory
    }
}

/// The decision on a failed request.
public enum RetryDecision: Sendable {
    /// Leaves the decision to others; if none decides, the request fails.
    case noOpinion
    /// Retries after a delay, unless the request was already retried `count` times.
    ///
    /// A send that may have reached the peer is retried only if that does no harm: at QoS 1 and 2, or when its options
    /// say that it is idempotent.
    case retry(count: Int, delay: Duration)
    /// Fails with the request's own error.
    case doNotRetry
    /// Fails with this error; an error other than `WaybillError` becomes the `underlying` error.
    case doNotRetryWithError(any Error)
}
