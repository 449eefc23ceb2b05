public import Waybill

/// Puts an access token into each CONNECT, and has one that the server refuses replaced once.
public actor TokenInterceptor: Interceptor {
    private let fetch: @Sendable () async throws -> String
    private var token: String?

    /// Makes the interceptor.
    /// - Parameter fetch: Gets a fresh token.
    public init(fetch: @escaping @Sendable () async throws -> String) {
        self.fetch = fetch
    }

    /// Adds the header; the next attempt starts from the entry's own request again.
    public func execute(_ request: Request, context: InterceptorContext) async throws -> Request {
        guard case .connect = request.command else { return request }
        let current: String
        if let token { current = token } else { current = try await fetch() }
        token = current
        var adapted = request
        adapted.headers["Authorization"] = "Bearer \(current)"
        return adapted
    }

    /// Has a CONNECT that was refused tried once more, with a fresh token.
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
