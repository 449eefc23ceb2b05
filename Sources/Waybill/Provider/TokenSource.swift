/// Where tokens come from: a key chain, a sign-in, an identity provider.
///
/// A ``TokenInterceptor`` keeps what it gets, and waits for one call of its source at a time. Once it waits
/// for it no longer, because time is up or nobody needs the token any more, the task of the call is
/// cancelled; a source should end soon then, since another call may follow.
///
/// A request that a source makes through a provider with the very same interceptor goes past that
/// interceptor: it would wait for itself. That holds for the tasks that the source begins, too, until the
/// call returns, but not for detached ones.
public protocol TokenSource: Sendable {
    /// The token to begin with; asked for when the first request needs one.
    ///
    /// - Throws: Anything. The requests that wait fail with `unauthorized` and this as `underlying`.
    func token() async throws -> String

    /// A new token in the place of one that the server has refused.
    ///
    /// - Parameter refused: The one that was refused.
    /// - Returns: The new one.
    /// - Throws: Anything. The requests that wait fail with `unauthorized` and this as `underlying`.
    func refresh(_ refused: String) async throws -> String
}

extension TokenSource {
    /// Asks for a token as at the beginning.
    public func refresh(_ refused: String) async throws -> String { try await token() }
}

/// Gets tokens from a closure.
struct ClosureTokenSource: TokenSource {
    let fetch: @Sendable (_ refused: String?) async throws -> String

    func token() async throws -> String { try await fetch(nil) }

    func refresh(_ refused: String) async throws -> String { try await fetch(refused) }
}

/// Why there is no token, other than that the source has failed.
///
/// The `underlying` error of a ``WaybillError`` with the code `unauthorized`.
public struct TokenFailure: Error, Hashable, Sendable {
    /// The name of the reason.
    public let name: String

    /// The source has not answered in time.
    public static let timedOut = TokenFailure(name: "timedOut")
    /// The source was asked too often lately, and is left alone for a while.
    public static let tooManyRefreshes = TokenFailure(name: "tooManyRefreshes")
    /// The token was discarded while it was waited for.
    public static let discarded = TokenFailure(name: "discarded")
}
