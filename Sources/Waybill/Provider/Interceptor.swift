/// Sees what goes out and what comes in, and decides on retries.
///
/// Interceptors run in the order in which they were added, each seeing the result of the one before;
/// for what comes in, in reverse order. Each does nothing by default. Those who want to see what happens
/// on the transport as well are an ``EventInterceptor``.
public protocol Interceptor: Sendable {
    /// Adapts a request before it is sent, at every attempt anew, starting from the entry's original.
    ///
    /// - Parameters:
    ///   - request: What the interceptor before has made of it.
    ///   - context: What it belongs to.
    /// - Returns: What is passed on.
    /// - Throws: Anything; the call then fails: with a `WaybillError` as it is, with anything else as
    ///   `interceptorFailed`.
    func execute(_ request: Request, context: InterceptorContext) async throws -> Request

    /// Adapts a message before it is decoded, or refuses it.
    ///
    /// - Parameters:
    ///   - message: What the interceptor behind has made of it.
    ///   - context: What it belongs to.
    /// - Returns: What is passed on.
    /// - Throws: Anything; the consumer then gets that error in the place of this message.
    func receive(_ message: Message, context: InterceptorContext) async throws -> Message

    /// Decides whether a request that failed is tried again; the first who has an opinion is heard.
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
    /// Passes on what it was given.
    public func execute(
        _ request: Request,
        context: InterceptorContext
    ) async throws -> Request { request }

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

/// What an interceptor's call belongs to.
public struct InterceptorContext: Sendable {
    /// The attempt, from 1.
    public var attempt: Int
    /// The name of the request's command.
    public var command: String
    /// The topic of the request.
    public var topic: String?
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
