/// The interceptors of a request's provider, for the requests that a transport makes by itself.
///
/// A transport sends a CONNECT by itself when a request needs a connection, and after the loss of one. A connection has
/// the chain of the provider whose request opened it, and keeps it across losses. A provider that connects explicitly
/// during a reconnection replaces that chain with its own. Requests of other providers over the same connection do not
/// change the chain.
///
/// A custom transport that reconnects keeps the chain of the request and does this at every attempt:
///
/// ```swift
/// var attempts = chain.attempts(at: Request(topic: nil, command: .connect), isReconnection: true)
/// while true {
///     let connect = try await attempts.next()
///     do { return try await dial(connect) } catch let error as WaybillError {
///         try await attempts.waitForRetry(after: error)
///     }
/// }
/// ```
///
/// A connection keeps its interceptors alive, and the objects that they hold.
public struct RequestChain: Sendable {
    private final class Origin: Sendable {
        let request: Request
        /// The context of the attempt, with the interceptors' memory of the request.
        let context: InterceptorContext

        init(_ request: Request, _ context: InterceptorContext) {
            self.request = request
            self.context = context
        }
    }

    private let interception: Interception
    /// Kept only for requests that a transport may have to repeat: a copy costs as much as an interceptor.
    private let origin: Origin?
    /// Whether the entry itself states headers.
    let statesHeaders: Bool

    init(_ interception: Interception, _ original: Request, _ context: InterceptorContext) {
        self.interception = interception
        statesHeaders = !original.headers.isEmpty
        origin =
            switch original.command.code {
            case .connect, .subscribe: Origin(original, context)
            case .send where interception.keepsSends || original.command[.url] != nil:
                Origin(original, context)
            default: nil
            }
    }

    private init(_ interception: Interception) {
        self.interception = interception
        origin = nil
        statesHeaders = false
    }

    /// The entry's own request, before the interceptors; nil for commands other than `connect` and `subscribe`, and for
    /// `send` unless the transport stores sends, or the entry states a URL.
    public var original: Request? { origin?.request }

    /// Whether the provider leaves an option out of the request, because the transport does not support it.
    package func leavesOut(_ option: OptionName) -> Bool {
        guard let omitted = interception.omitted, let origin else { return false }
        return omitted.leavesOut(option, of: origin.request.command.kind, origin.context.memory)
    }

    /// The same chain, for a request that the transport makes by itself.
    package var withoutOriginal: RequestChain {
        RequestChain(interception)
    }

    /// Whether both have the interceptors of the same provider.
    package func isSame(as other: RequestChain) -> Bool { interception === other.interception }

    /// The attempts at the request that carries this chain.
    ///
    /// The provider has adapted the request for the present attempt. The transport makes the attempts that follow a
    /// refusal.
    package var attemptsUnderWay: RequestAttempts? {
        origin.map { origin in
            RequestAttempts(
                interception: interception,
                original: origin.request,
                context: origin.context,
                isProvidersOwn: true
            )
        }
    }

    /// Begins the attempts at a request.
    ///
    /// - Parameters:
    ///   - request: The request before the interceptors: that of an entry, or the transport's own.
    ///   - isReconnection: Whether the request restores a lost connection or event stream.
    /// - Returns: The attempts.
    public func attempts(at request: Request, isReconnection: Bool = false) -> RequestAttempts {
        var context = interception.context(of: request)
        context.isReconnection = isReconnection
        return RequestAttempts(interception: interception, original: request, context: context)
    }
}

/// The attempts at one request that a transport makes by itself.
public struct RequestAttempts: Sendable {
    let interception: Interception
    let original: Request
    var context: InterceptorContext
    /// Whether the provider waits for the request, and thus learns of its success itself.
    var isProvidersOwn = false

    /// Returns the request of the present attempt, adapted by each interceptor.
    ///
    /// - Returns: The request.
    /// - Throws: The error of an interceptor, as `WaybillError`; `CancellationError`.
    public func next() async throws -> Request {
        try await interception.adapted(original, context)
    }

    /// Asks the interceptors whether there is another attempt, and waits until it is due.
    ///
    /// - Parameter error: The error of the present attempt.
    /// - Throws: The final error of the request if there is no other attempt; `CancellationError`.
    public mutating func waitForRetry(after error: WaybillError) async throws {
        do {
            try await interception.waitForRetry(original, after: error, &context)
        } catch var error as WaybillError {
            error.isDecided = true
            throw error
        }
    }

    /// Asks the token interceptors for another token, because the server may have refused the present one.
    ///
    /// - Parameter error: The error of the present attempt.
    /// - Returns: Whether there is another token for the next attempt.
    package mutating func replaceToken(after error: WaybillError) async -> Bool {
        await interception.replaceToken(original, after: error, &context)
    }

    /// The attempts at a later connection, which know the tokens of this one.
    package func renewed() -> RequestAttempts {
        var renewed = restarted()
        renewed.context.isReconnection = true
        renewed.context.memory.takeTokens(of: context.memory)
        return renewed
    }

    /// The same request with a new count of attempts.
    package func restarted() -> RequestAttempts {
        var context = interception.context(of: original)
        context.isReconnection = self.context.isReconnection
        return RequestAttempts(interception: interception, original: original, context: context)
    }

    /// Reports the success of the request to the retry budgets.
    public func noteSuccess() {
        guard !isProvidersOwn else { return }
        context.memory.noteSuccess()
    }
}

extension Request {
    /// Makes the CONNECT for a connection that a request needs.
    ///
    /// - Parameter request: The request, whose provider's interceptors will adapt the CONNECT.
    /// - Returns: A `connect` without options; run it through its ``chain``.
    public static func connecting(for request: Request) -> Request {
        var connect = Request(topic: nil, command: .connect)
        connect.chain = request.chain?.withoutOriginal
        return connect
    }
}

extension RequestChain: Unmirrored {}

extension RequestAttempts: Unmirrored {}
