public import Waybill

/// Puts an access token into the credentials of each attempt to connect, and has one that the server
/// refuses replaced once.
public actor TokenInterceptor: Interceptor {
    private let userName: String
    private let fetch: @Sendable () async throws -> String
    private var token: String?

    /// Makes the interceptor.
    ///
    /// - Parameters:
    ///   - userName: Whose token it is.
    ///   - fetch: Gets a fresh token.
    public init(userName: String, fetch: @escaping @Sendable () async throws -> String) {
        self.userName = userName
        self.fetch = fetch
    }

    /// Adds the credentials to a `connect`.
    public func execute(_ request: Request, context: InterceptorContext) async throws -> Request {
        guard case .connect(var options) = request.command else { return request }
        let current: String
        if let token { current = token } else { current = try await fetch() }
        token = current
        options.userName = userName
        options.password = current
        var adapted = request
        adapted.command = .connect(options)
        return adapted
    }

    /// Has a `connect` that was refused tried once more, with a fresh token.
    public func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        guard error.code == .unauthorized else { return .noOpinion }
        token = nil
        return .retry(count: 1, delay: .zero)
    }
}
