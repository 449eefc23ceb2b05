/// Adds an access token to requests, and replaces a token that the server refuses.
///
/// There is one call of the token source at a time, however many requests wait or are refused; all of them get its
/// result. A refused request is retried once with the new token; a second refusal fails it with `unauthorized`. A late
/// refusal, of a token that was already replaced, is retried once with the present token and without a refresh. If the
/// source fails, all requests that wait, and all that are refused for the same token, fail with `unauthorized` and the
/// source's error as `underlying`.
///
/// ```swift
/// let tokens = TokenInterceptor(.password(userName: "ada")) { refused in
///     try await account.accessToken(replacing: refused)
/// }
/// let provider = Provider<ChatEntry>(transport: transport).intercepted(tokens)
/// ```
///
/// Several providers may share one interceptor and its token. An entry that needs no token says so by
/// ``EntryType/needsToken``. The interceptor is the only place to configure a token: it is added to every CONNECT, also
/// on demand and after a lost connection, and to each request for an event stream.
public final class TokenInterceptor: Interceptor {
    /// The limits for calls of the token source.
    public struct Configuration: Sendable {
        /// The time limit of a call of the source; nil for none.
        public var timeout: Duration?
        /// The number of refreshes and failed first calls within ``refreshWindow``.
        ///
        /// Further calls fail at once with ``TokenFailure/tooManyRefreshes``.
        public var refreshLimit: Int
        /// The time window of ``refreshLimit``.
        public var refreshWindow: Duration
        /// Whether an error means that the token was refused.
        public var isRefusal: @Sendable (WaybillError) -> Bool
        /// The clock for the time limit and the window.
        public var clock: any Clock<Duration>

        /// Makes a configuration; by default 30 s for the source, and 5 refreshes in 30 s.
        ///
        /// - Parameters:
        ///   - timeout: The time limit of a call of the source.
        ///   - refreshLimit: The number of refreshes within the window.
        ///   - refreshWindow: The time window.
        ///   - clock: The clock for the time limit and the window.
        ///   - isRefusal: Whether an error means that the token was refused: by default ``isUnauthorized``.
        public init(
            timeout: Duration? = .seconds(30),
            refreshLimit: Int = 5,
            refreshWindow: Duration = .seconds(30),
            clock: any Clock<Duration> = ContinuousClock(),
            isRefusal: @escaping @Sendable (WaybillError) -> Bool = Configuration.isUnauthorized
        ) {
            self.timeout = timeout
            self.refreshLimit = refreshLimit
            self.refreshWindow = refreshWindow
            self.clock = clock
            self.isRefusal = isRefusal
        }

        /// Whether a server refused the credentials: the code `unauthorized`, or a close before CONNECT was answered.
        ///
        /// A proxy's refusal does not count.
        public static let isUnauthorized: @Sendable (WaybillError) -> Bool = { error in
            error.wordlessRefusal == .silence
                || error.code == .unauthorized
                    && (error.underlying as? HTTPRefusal)?.isFromProxy != true
        }
    }

    private let placement: TokenPlacement
    private let isRefusal: @Sendable (WaybillError) -> Bool
    private let cache: TokenCache

    /// Makes the interceptor.
    ///
    /// - Parameters:
    ///   - placement: The place of the token in requests.
    ///   - source: The source of tokens.
    ///   - configuration: The limits for calls of the source.
    public init(
        _ placement: TokenPlacement = .bearer,
        source: some TokenSource,
        configuration: Configuration = Configuration()
    ) {
        self.placement = placement
        isRefusal = configuration.isRefusal
        cache = TokenCache(source, configuration)
    }

    /// Makes the interceptor with a closure as its token source.
    ///
    /// - Parameters:
    ///   - placement: The place of the token in requests.
    ///   - configuration: The limits for calls of the closure.
    ///   - fetch: Fetches a token: the first one, or a new one in place of a refused token.
    public convenience init(
        _ placement: TokenPlacement = .bearer,
        configuration: Configuration = Configuration(),
        fetch: @escaping @Sendable (_ refused: String?) async throws -> String
    ) {
        self.init(
            placement,
            source: ClosureTokenSource(fetch: fetch),
            configuration: configuration
        )
    }

    /// Returns the token for uses that no interceptor reaches, such as the credentials of a transport.
    ///
    /// Such callers and the interceptor's requests share the token and its refresh.
    ///
    /// - Parameter refused: A token that the server has refused; if it is the present one, it is replaced first.
    /// - Returns: The token.
    /// - Throws: `WaybillError` with the code `unauthorized` if there is no token, or if the source itself calls this;
    ///   or `CancellationError`.
    public func token(replacing refused: String? = nil) async throws -> String {
        guard !cache.isAskedBySource else {
            throw WaybillError(.unauthorized, "the token source waits for its own token")
        }
        let memory = RequestMemory(DisconnectSignal())
        let (present, failures) = try await cache.credential(for: memory)
        guard present.token == refused else { return present.token }
        let use = TokenUse(
            version: present.version,
            attempt: 1,
            failures: failures,
            isRepeated: false
        )
        try await cache.replace(use, for: memory)
        return try await cache.credential(for: memory).0.token
    }

    /// Discards the token, for example at a sign-out; the next request that needs a token asks the source.
    ///
    /// Requests that wait for a token fail with ``TokenFailure/discarded``.
    public func forget() {
        cache.forget()
    }

    // MARK: Interceptor

    /// Adds the token to the request; waits if there is none yet or if it is being replaced.
    ///
    /// - Throws: `unauthorized` if there is no token; `notConnected` if a disconnect is requested during the wait.
    public func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        guard concerns(request) else { return }
        do {
            let (credential, failures) = try await cache.credential(for: context.memory)
            let earlier = context.memory.tokenUse(by: self)
            let use = TokenUse(
                version: credential.version,
                attempt: context.attempt,
                failures: failures,
                isRepeated: earlier?.isRepeated ?? false,
                lateRefusalCount: earlier?.lateRefusalCount ?? 0
            )
            context.memory.note(use, by: self)
            placement.apply(credential.token, to: &request)
        } catch let error as WaybillError {
            context.memory.attemptWithoutToken = context.attempt
            throw error.about(context)
        }
    }

    /// Retries a request once with another token if its token was refused.
    public func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        guard concerns(request), isRefusal(error) else { return .noOpinion }
        // The error is this interceptor's own: there was no token, and nothing was sent.
        guard context.memory.attemptWithoutToken != context.attempt else { return .doNotRetry }
        guard var use = context.memory.tokenUse(by: self), use.attempt == context.attempt else {
            return .noOpinion
        }
        guard !use.isRepeated else { return stop(after: error, context) }
        do {
            let isLate = try await cache.replace(use, for: context.memory)
            // The replacement may have expired, too, and no new token was fetched since.
            if isLate, use.lateRefusalCount < TokenUse.maximumLateRefusals {
                use.lateRefusalCount += 1
            } else {
                use.isRepeated = true
            }
        } catch var failure as WaybillError {
            failure.peerReason = error.peerReason
            return .doNotRetryWithError(failure.about(context))
        } catch {
            return .doNotRetryWithError(error)
        }
        context.memory.note(use, by: self)
        // One retry beyond those that other interceptors have caused.
        return .retry(count: context.attempt, delay: .zero)
    }

    private func concerns(_ request: Request) -> Bool {
        request.needsToken && placement.covers(request) && !cache.isAskedBySource
    }

    private func stop(after error: WaybillError, _ context: InterceptorContext) -> RetryDecision {
        guard error.code != .unauthorized else { return .doNotRetry }
        let refusal = WaybillError(
            .unauthorized,
            "the new token was refused, too",
            peerReason: error.peerReason,
            underlying: error
        )
        return .doNotRetryWithError(refusal.about(context))
    }
}

extension TokenInterceptor: CustomStringConvertible, Unmirrored {
    /// The name of the type: tokens are never shown.
    public var description: String { "TokenInterceptor" }
}

extension WaybillError {
    /// The same error with command and topic of a context.
    fileprivate func about(_ context: InterceptorContext) -> WaybillError {
        var error = self
        error.topic = context.topic
        error.command = context.command
        error.attempt = context.attempt
        return error
    }
}
