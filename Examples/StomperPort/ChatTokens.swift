public import Waybill

/// Where the app keeps its token.
public protocol ChatTokens: Sendable {
    /// The token of this moment.
    func current() async -> String
    /// Gets another token from the sign-in service, and keeps it.
    func renew() async throws
}

/// Puts the token into each CONNECT, and decides what happens when the server refuses it: written by hand.
public struct ChatTokenInterceptor: Interceptor {
    private let tokens: any ChatTokens
    private let delay: Duration

    /// Makes the interceptor.
    ///
    /// - Parameters:
    ///   - tokens: Where the token is kept.
    ///   - delay: How long to wait before the next attempt.
    public init(tokens: any ChatTokens, delay: Duration = .seconds(2)) {
        self.tokens = tokens
        self.delay = delay
    }

    /// Adds the token; sees each CONNECT, also after a lost connection.
    public func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        guard case .connect = request.command else { return }
        request.headers["Authorization"] = "Bearer \(await tokens.current())"
    }

    /// Gets another token when the server has refused one.
    public func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        guard error.code == .unauthorized else { return .noOpinion }
        do {
            try await tokens.renew()
            return .retry(count: 3, delay: delay)
        } catch {
            return .doNotRetryWithError(error)
        }
    }
}

extension TokenInterceptor {
    /// Does the same as `ChatTokenInterceptor`, and renews the token once however many requests wait for it.
    ///
    /// - Parameter fetch: Gets a token: the first one, or another in the place of one that was refused.
    public static func chat(
        fetch: @escaping @Sendable (_ refused: String?) async throws -> String
    ) -> TokenInterceptor {
        TokenInterceptor(
            .header("Authorization", on: [.connect]) { "Bearer \($0)" },
            fetch: fetch
        )
    }
}
