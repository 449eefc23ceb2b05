/// The interceptors of the provider that a request comes from, for the requests that a transport makes by itself.
///
/// A transport makes a CONNECT by itself when a request needs a connection, and after the loss of one. The chain of a
/// connection is that of the provider whose request made it, and stays with the connection across its losses. A
/// provider that connects explicitly while the connection is on its way back puts its own chain in the place of the
/// other. Requests of other providers over the same connection do not change its chain.
///
/// A transport of one's own that reconnects keeps the chain of the request and does this at every attempt:
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
/// As long as a connection lives it keeps the interceptors alive, and with them what they hold.
public struct RequestChain: Sendable {
    private final class Origin: Sendable {
        let request: Request
        /// Which attempt it is, and what the interceptors remember of it.
        let context: InterceptorContext

        init(_ request: Request, _ context: InterceptorContext) {
            self.request = request
            self.context = context
        }
    }

    private let interception: Interception
    /// Kept only for what a transport may have to say again: a copy costs what an interceptor costs.
    private let origin: Origin?

    init(_ interception: Interception, _ original: Request, _ context: InterceptorContext) {
        self.interception = interception
        origin =
            switch original.command {
            case .connect, .subscribe: Origin(original, context)
            default: nil
            }
    }

    private init(_ interception: Interception) {
        self.interception = interception
        origin = nil
    }

    /// The entry's own request, before the interceptors: of a `connect` or a `subscribe`, nil of other commands.
    public var original: Request? { origin?.request }

    /// The same chain for a request that the transport makes by itself.
    fileprivate var withoutOriginal: RequestChain {
        RequestChain(interception)
    }

    /// The attempts at the request that carries this chain: its provider has adapted it for the present one, and the
    /// transport makes those that follow a refusal.
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

    /// Begins to make a request.
    ///
    /// - Parameters:
    ///   - request: The request before the interceptors: an entry's own or the transport's.
    ///   - isReconnection: Whether it stands in the place of a connection or an event stream that was lost.
    /// - Returns: Its attempts.
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
    /// Whether the provider waits for the request, and hears of its success itself.
    var isProvidersOwn = false

    /// The request of the present attempt, adapted by each interceptor.
    ///
    /// - Returns: The request.
    /// - Throws: What an interceptor throws, as `WaybillError`; `CancellationError`.
    public func next() async throws -> Request {
        try await interception.adapted(original, context)
    }

    /// Asks the interceptors whether there is another attempt, and waits until it is due.
    ///
    /// - Parameter error: Why the present attempt failed.
    /// - Throws: The error that the request has failed with, when there is no other attempt; `CancellationError`.
    public mutating func waitForRetry(after error: WaybillError) async throws {
        do {
            try await interception.waitForRetry(original, after: error, &context)
        } catch var error as WaybillError {
            error.isDecided = true
            throw error
        }
    }

    /// The same request, begun anew.
    package func restarted() -> RequestAttempts {
        var context = interception.context(of: original)
        context.isReconnection = self.context.isReconnection
        return RequestAttempts(interception: interception, original: original, context: context)
    }

    /// Tells the interceptors' budgets that the request has succeeded.
    public func noteSuccess() {
        guard !isProvidersOwn else { return }
        context.memory.noteSuccess()
    }
}

extension Request {
    /// The CONNECT of a connection that a request needs, as a transport makes it by itself.
    ///
    /// - Parameter request: The request, whose provider's interceptors will adapt the CONNECT.
    /// - Returns: A `connect` without options, to be run through its ``chain``.
    public static func connecting(for request: Request) -> Request {
        var connect = Request(topic: nil, command: .connect)
        connect.chain = request.chain?.withoutOriginal
        return connect
    }
}

extension RequestChain: CustomReflectable {
    /// Nothing: a request may hold secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension RequestAttempts: CustomReflectable {
    /// Nothing: a request may hold secrets.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
