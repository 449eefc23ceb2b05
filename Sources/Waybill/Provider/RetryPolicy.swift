/// Tries requests again that have failed for reasons that may pass.
///
/// ```swift
/// let budget = RetryBudget()
/// let provider = Provider<ChatEntry>(transport: transport)
///     .intercepted(RetryPolicy(maximumAttempts: 5, budget: budget))
/// ```
///
/// Where it has no retry to give it has no opinion, so that several policies may stand one behind the other: one
/// for each kind of request or error. A send that may have reached the peer is tried again only if that does no
/// harm, whatever a policy says: see ``RetryDecision/retry(count:delay:)``.
public struct RetryPolicy: Interceptor {
    /// How many attempts there are at the most, the first one included.
    ///
    /// Attempts that other interceptors have asked for count, too.
    public var maximumAttempts: Int
    /// How long to wait before each retry, unless the server wants more.
    public var delay: RetryDelay
    /// The kinds of errors after which there is a retry, besides refusals of a server that is busy
    /// (``WaybillError/isServerBusy``).
    public var codes: Set<WaybillError.Code>
    /// The commands whose requests are tried again.
    public var commands: Set<EntryCommand.Kind>
    /// The longest delay that a server may ask for; a request that would have to wait longer fails.
    public var longestServerDelay: Duration
    /// How long a server that is busy and says not for how long is left alone, before ``delay``; 5 seconds by default.
    public var busyDelay = Duration.seconds(5)
    /// What bounds the retries of all requests together; nil for no bound.
    public var budget: RetryBudget?
    /// Decides about requests and errors that codes and commands let pass.
    public var condition: @Sendable (Request, WaybillError) -> Bool

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - maximumAttempts: How many attempts there are at the most, the first one included.
    ///   - delay: How long to wait before each retry.
    ///   - codes: The kinds of errors after which there is a retry.
    ///   - commands: The commands whose requests are tried again.
    ///   - longestServerDelay: The longest delay that a server may ask for.
    ///   - budget: What bounds the retries of all requests together.
    ///   - condition: Decides about what codes and commands let pass.
    public init(
        maximumAttempts: Int = 3,
        delay: RetryDelay = .exponential(),
        codes: Set<WaybillError.Code> = WaybillError.Code.retryable,
        commands: Set<EntryCommand.Kind> = Set(EntryCommand.Kind.allCases),
        longestServerDelay: Duration = .seconds(60),
        budget: RetryBudget? = nil,
        where condition: @escaping @Sendable (Request, WaybillError) -> Bool = { _, _ in true }
    ) {
        self.maximumAttempts = maximumAttempts
        self.delay = delay
        self.codes = codes
        self.commands = commands
        self.longestServerDelay = longestServerDelay
        self.budget = budget
        self.condition = condition
    }

    /// Has the budget told when the request succeeds; the request stays as it is.
    public func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        if let budget, commands.contains(request.command.kind) { context.memory.enter(budget) }
    }

    /// Has a request tried again as long as the policy allows.
    public func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        guard covers(request, error) else { return .noOpinion }
        // Each failure counts, also one that is the last in any case.
        let isWithinBudget = budget?.noteFailure() ?? true
        guard isWithinBudget, context.attempt < maximumAttempts else { return .noOpinion }
        let own = delay.duration(beforeRetry: context.attempt)
        guard let asked = error.serverDelay else {
            let pause = error.isServerBusy ? max(busyDelay, .zero) : .zero
            return .retry(count: maximumAttempts - 1, delay: own + pause)
        }
        guard asked <= longestServerDelay else { return .noOpinion }
        return .retry(count: maximumAttempts - 1, delay: max(own, asked))
    }

    /// Whether the policy is meant for such a request and error.
    func covers(_ request: Request, _ error: WaybillError) -> Bool {
        (codes.contains(error.code) || error.isServerBusy)
            && commands.contains(request.command.kind) && condition(request, error)
    }
}
