/// Sees what goes out and what comes in, and decides on retries.
///
/// Interceptors run in the order in which they were added, each seeing the result of the one before;
/// for what comes in, in reverse order. Each does nothing by default. Those who want to see what happens
/// on the transport as well are an ``EventInterceptor``.
public protocol Interceptor: Sendable {
    /// Adapts a request before it is sent. Each attempt begins anew with the entry's own request.
    ///
    /// Every CONNECT passes here: one that an entry asks for, one that a transport makes on demand, and each one that
    /// follows a lost connection. So does each request for an event stream, also when the stream is asked for again.
    ///
    /// - Parameters:
    ///   - request: The request as the interceptor before left it; change it in place.
    ///   - context: What the request belongs to.
    /// - Throws: Anything. The call then fails: with a `WaybillError` as it is, with any other error as
    ///   `interceptorFailed`. A connection that was lost is tried again later if the error is retryable or
    ///   `interceptorFailed`, or when a token source could not be reached.
    func adapt(_ request: inout Request, context: InterceptorContext) async throws

    /// Adapts a message before it is decoded, or refuses it.
    ///
    /// - Parameters:
    ///   - message: What the interceptor behind has made of it.
    ///   - context: What it belongs to.
    /// - Returns: What is passed on.
    /// - Throws: Anything; the consumer then gets that error in the place of this message.
    func receive(_ message: Message, context: InterceptorContext) async throws -> Message

    /// Decides whether a request that failed is tried again. The first answer other than `noOpinion` counts.
    ///
    /// For a CONNECT that a transport makes by itself, only a refusal by the server comes here (`unauthorized`,
    /// `rejected`); when to connect again after a loss is the transport's decision.
    ///
    /// - Parameters:
    ///   - request: The entry's original request.
    ///   - error: Why it failed.
    ///   - context: What it belongs to, with the number of the attempt that failed.
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

    /// Passes on what it was given.
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

/// An interceptor that also sees the receipt of each request, and how long it took: for measurements and audits.
///
/// It is a protocol of its own so that a provider without one reads no clock and makes no further calls. A hook around
/// the whole call (`next`) could do the same, but would put a closure and a frame of its own around each request.
public protocol ReceiptInterceptor: Interceptor {
    /// Sees that the peer has confirmed a request, before the call returns.
    ///
    /// Called on any thread, for enqueued entries on that of the connection: it should return soon. Subscriptions, and
    /// connections that a transport makes by itself, are not shown here; they are events.
    ///
    /// - Parameters:
    ///   - receipt: What the peer said.
    ///   - request: The request as the last interceptor left it.
    ///   - duration: How long the attempt took, from the first interceptor to the receipt, by the provider's clock.
    ///   - context: What the request belongs to.
    func confirm(
        _ receipt: Receipt,
        of request: Request,
        after duration: Duration,
        context: InterceptorContext
    )
}

/// What an interceptor's call belongs to.
public struct InterceptorContext: Sendable {
    /// The attempt, from 1.
    public var attempt: Int
    /// The name of the request's command.
    public var command: String
    /// The topic of the request.
    public var topic: String?
    /// Whether the transport makes the request by itself, in the place of a connection or an event stream that was
    /// lost.
    public var isReconnection = false
    /// What the package's own interceptors remember of the request, the same at every attempt.
    let memory: RequestMemory

    /// Describes a call, as a test of an interceptor does.
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

/// What becomes of a request that failed.
public enum RetryDecision: Sendable {
    /// Others may decide; if none does, it fails.
    case noOpinion
    /// It is tried again after a delay, unless it was tried again so many times already.
    ///
    /// A send that may have reached the peer is tried again only if that does no harm: at QoS 1 and 2, or
    /// when its options say that it is idempotent.
    case retry(count: Int, delay: Duration)
    /// It fails with its own error.
    case doNotRetry
    /// It fails with this error, as `underlying` unless it is a `WaybillError` itself.
    case doNotRetryWithError(any Error)
}
