/// A source of tokens: a key chain, a sign-in, an identity provider.
///
/// A ``TokenInterceptor`` stores the token, and has one call of its source at a time. A call goes on when no request
/// waits for it any more. It is cancelled at the time limit and by ``TokenInterceptor/forget()``, and should return soon
/// after that, since another call may follow. Without a time limit, a source that never answers blocks all requests.
///
/// A request that a source makes through a provider with the same interceptor skips that interceptor, because it would
/// wait for itself. This also covers the tasks that the source starts before the call returns, but not detached tasks.
public protocol TokenSource: Sendable {
    /// Fetches the first token, when the first request needs it.
    ///
    /// - Throws: Any error. The waiting requests fail with `unauthorized` and this error as `underlying`.
    func token() async throws -> String

    /// Fetches a new token in place of one that the server has refused.
    ///
    /// - Parameter refused: The refused token.
    /// - Returns: The new token.
    /// - Throws: Any error. The waiting requests fail with `unauthorized` and this error as `underlying`.
    func refresh(_ refused: String) async throws -> String
}

extension TokenSource {
    /// Calls ``token()``.
    public func refresh(_ refused: String) async throws -> String { try await token() }
}

struct ClosureTokenSource: TokenSource {
    let fetch: @Sendable (_ refused: String?) async throws -> String

    func token() async throws -> String { try await fetch(nil) }

    func refresh(_ refused: String) async throws -> String { try await fetch(refused) }
}

/// The reason why there is no token, other than a failure of the source.
///
/// It is the `underlying` error of a ``WaybillError`` with the code `unauthorized`.
public struct TokenFailure: Error, Hashable, Sendable {
    /// The name of the reason.
    public let name: String

    /// The source did not return in time.
    public static let timedOut = TokenFailure(name: "timedOut")
    /// The source was called too often within the window, and is not called for a while.
    public static let tooManyRefreshes = TokenFailure(name: "tooManyRefreshes")
    /// The token was discarded while the request waited for it.
    public static let discarded = TokenFailure(name: "discarded")
}
