public import Waybill

/// The app's store for its token.
public protocol ChatTokens: Sendable {
    /// The current token.
    func current() async -> String
    /// Gets a new token from the sign-in service and stores it.
    func renew() async throws
}

/// An interceptor written by hand: adds the token to each CONNECT, and renews it when the server refuses it.
public struct ChatTokenInterceptor: Interceptor {
    private let tokens: any ChatTokens
    private let delay: Duration

    /// Makes the interceptor.
    ///
    /// - Parameters:
    ///   - tokens: The store of the token.
    ///   - delay: The wait before the next attempt.
    public init(tokens: any ChatTokens, delay: Duration = .seconds(2)) {
        self.tokens = tokens
        self.delay = delay
    }

    /// Adds the token to each CONNECT, also after a lost connection.
    public func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        guard request.command.kind == .connect else { return }
        request.headers["Authorization"] = "Bearer \(await tokens.current())"
    }

    /// Gets a new token when the server has refused one.
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
    /// Does the same as `ChatTokenInterceptor`, and renews the token once for all requests that wait for it.
    ///
    /// - Parameter fetch: Gets the first token, or a new one in place of a refused one.
    public static func chat(
        fetch: @escaping @Sendable (_ refused: String?) async throws -> String
    ) -> TokenInterceptor {
        TokenInterceptor(
            .header("Authorization", on: [.connect]) { "Bearer \($0)" },
            fetch: fetch
        )
    }
}
