/// Puts an access token onto requests, and has one that the server refuses replaced.
///
/// However many requests are refused or wait, there is one call of the source at a time, and all get its
/// result. A request that is refused is tried once more with the new token; refused again it fails with
/// `unauthorized`. One that was refused late, when its token had been replaced already, is tried again with
/// the present token and no refresh, once. When the source fails, all who wait and all who are refused for that
/// same token fail with `unauthorized`, and the source's error as `underlying`.
///
/// ```swift
/// let tokens = TokenInterceptor(.password(userName: "ada")) { refused in
///     try await account.accessToken(replacing: refused)
/// }
/// let provider = Provider<ChatEntry>(transport: transport).intercepted(tokens)
/// ```
///
/// One interceptor may serve several providers: they share the token. An entry says by ``EntryType/needsToken`` that
/// it needs none. This is the only place where a token is configured: every CONNECT gets it, also on demand and after
/// a lost connection, and so does each request for an event stream.
public final class TokenInterceptor: Interceptor {
    /// When the source is asked, and how often.
    public struct Configuration: Sendable {
        /// How long the source may take; nil for any time.
        public var timeout: Duration?
        /// How many refreshes, and first calls that fail, there may be within ``refreshWindow``.
        ///
        /// Further ones fail at once, with ``TokenFailure/tooManyRefreshes``.
        public var refreshLimit: Int
        /// The time within which ``refreshLimit`` counts.
        public var refreshWindow: Duration
        /// Which errors mean that the token was refused.
        public var isRefusal: @Sendable (WaybillError) -> Bool
        /// What times are measured by.
        public var clock: any Clock<Duration>

        /// Collects settings; by default 30 s for the source, and 5 refreshes in 30 s.
        ///
        /// - Parameters:
        ///   - timeout: How long the source may take.
        ///   - refreshLimit: How many refreshes there may be within the window.
        ///   - refreshWindow: The window.
        ///   - clock: What times are measured by.
        ///   - isRefusal: Which errors mean that the token was refused: by default `unauthorized`, unless a
        ///     proxy has said so.
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

        /// Whether a server does not accept the credentials; what a proxy says is not about them.
        public static let isUnauthorized: @Sendable (WaybillError) -> Bool = { error in
            error.code == .unauthorized
                && (error.underlying as? HTTPRefusal)?.isFromProxy != true
        }
    }

    private let placement: TokenPlacement
    private let isRefusal: @Sendable (WaybillError) -> Bool
    private let keeper: TokenKeeper

    /// Makes the interceptor.
    ///
    /// - Parameters:
    ///   - placement: How the token gets onto requests.
    ///   - source: Where tokens come from.
    ///   - configuration: When the source is asked, and how often.
    public init(
        _ placement: TokenPlacement = .bearer,
        source: some TokenSource,
        configuration: Configuration = Configuration()
    ) {
        self.placement = placement
        isRefusal = configuration.isRefusal
        keeper = TokenKeeper(source, configuration)
    }

    /// Makes the interceptor, with tokens from a closure.
    ///
    /// - Parameters:
    ///   - placement: How the token gets onto requests.
    ///   - configuration: When the closure is called, and how often.
    ///   - fetch: Gets a token: the first one, or another in the place of one that was refused.
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

    /// The token, for what no interceptor reaches, such as the credentials with which a transport connects.
    ///
    /// Whoever asks here and the requests that go through the interceptor share the token, and its refresh.
    ///
    /// - Parameter refused: A token that the server has refused; if it is the present one it is replaced first.
    /// - Returns: The token.
    /// - Throws: `WaybillError` with the code `unauthorized` when there is none to be had, or for the source
    ///   itself; or `CancellationError`.
    public func token(replacing refused: String? = nil) async throws -> String {
        guard !keeper.isAskedBySource else {
            throw WaybillError(.unauthorized, "the token source waits for its own token")
        }
        let memory = RequestMemory(DisconnectSignal())
        let (present, failures) = try await keeper.credential(for: memory)
        guard present.token == refused else { return present.token }
        let use = TokenUse(
            version: present.version,
            attempt: 1,
            failures: failures,
            isRepeated: false
        )
        try await keeper.replace(use, for: memory)
        return try await keeper.credential(for: memory).0.token
    }

    /// Discards the token, as at a sign-out: the next request that needs one asks the source.
    ///
    /// Requests that wait for a token fail with ``TokenFailure/discarded``.
    public func forget() {
        keeper.forget()
    }

    // MARK: Interceptor

    /// Puts the token onto the request; waits for it where there is none or where it is being replaced.
    ///
    /// - Throws: `unauthorized` when there is none to be had, `notConnected` when somebody disconnects while it
    ///   is waited for.
    public func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        guard concerns(request) else { return }
        do {
            let (credential, failures) = try await keeper.credential(for: context.memory)
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

    /// Has a request whose token was refused tried once more, with another one.
    public func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        guard concerns(request), isRefusal(error) else { return .noOpinion }
        // The refusal is this side's own: there is no token, and nothing was sent.
        guard context.memory.attemptWithoutToken != context.attempt else { return .doNotRetry }
        guard var use = context.memory.tokenUse(by: self), use.attempt == context.attempt else {
            return .noOpinion
        }
        guard !use.isRepeated else { return stop(after: error, context) }
        do {
            let isLate = try await keeper.replace(use, for: context.memory)
            // A token that was there already may have expired, too, and another one was not asked for yet.
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
        // One more than there were, whoever asked for those.
        return .retry(count: context.attempt, delay: .zero)
    }

    private func concerns(_ request: Request) -> Bool {
        request.needsToken && placement.covers(request) && !keeper.isAskedBySource
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

extension TokenInterceptor: CustomStringConvertible, CustomReflectable {
    /// The name of the type: tokens are never shown.
    public var description: String { "TokenInterceptor" }

    /// Nothing: tokens are never shown.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension WaybillError {
    /// The same error, about the request of a context.
    fileprivate func about(_ context: InterceptorContext) -> WaybillError {
        var error = self
        error.topic = context.topic
        error.command = context.command
        error.attempt = context.attempt
        return error
    }
}
