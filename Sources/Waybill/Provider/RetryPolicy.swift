/// Retries requests that failed for a temporary reason.
///
/// ```swift
/// let budget = RetryBudget()
/// let provider = Provider<ChatEntry>(transport: transport)
///     .intercepted(RetryPolicy(maximumAttempts: 5, budget: budget))
/// ```
///
/// A policy without a retry to offer has no opinion. Several policies can therefore follow one another, one for each
/// kind of request or error. A send that may have reached the peer is retried only if that does no harm, whatever a
/// policy says: see ``RetryDecision/retry(count:delay:)``.
public struct RetryPolicy: Interceptor {
    /// The maximum number of attempts, including the first.
    ///
    /// Attempts that other interceptors have caused count, too.
    public var maximumAttempts: Int
    /// The wait before each retry, unless the server asks for a longer one.
    public var delay: RetryDelay
    /// The codes of errors that are retried, in addition to those of a busy server (``WaybillError/isServerBusy``).
    public var codes: Set<WaybillError.Code>
    /// The commands whose requests are retried; nil for all.
    public var commands: Set<EntryCommand.Kind>?
    /// The longest delay that a server may ask for; a request that would have to wait longer fails.
    public var longestServerDelay: Duration
    /// The minimum wait, before ``delay``, for a busy server that names no delay; 5 seconds by default.
    public var busyDelay: Duration
    /// The shared budget of retries; nil for no limit.
    public var budget: RetryBudget?
    /// A further condition for requests and errors that match codes and commands.
    public var condition: @Sendable (Request, WaybillError) -> Bool

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - maximumAttempts: The maximum number of attempts, including the first.
    ///   - delay: The wait before each retry.
    ///   - codes: The codes of errors that are retried.
    ///   - commands: The commands whose requests are retried; nil for all.
    ///   - longestServerDelay: The longest delay that a server may ask for.
    ///   - busyDelay: The minimum wait for a busy server that names no delay.
    ///   - budget: The shared budget of retries.
    ///   - condition: A further condition for requests and errors that match codes and commands.
    public init(
        maximumAttempts: Int = 3,
        delay: RetryDelay = .exponential(),
        codes: Set<WaybillError.Code> = WaybillError.Code.retryable,
        commands: Set<EntryCommand.Kind>? = nil,
        longestServerDelay: Duration = .seconds(60),
        busyDelay: Duration = .seconds(5),
        budget: RetryBudget? = nil,
        where condition: @escaping @Sendable (Request, WaybillError) -> Bool = { _, _ in true }
    ) {
        self.maximumAttempts = maximumAttempts
        self.delay = delay
        self.codes = codes
        self.commands = commands
        self.longestServerDelay = longestServerDelay
        self.busyDelay = busyDelay
        self.budget = budget
        self.condition = condition
    }

    /// Registers the budget for the request's success; the request stays unchanged.
    public func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        if let budget, covers(request) { context.memory.enter(budget) }
    }

    /// Decides for a retry as long as the policy allows it.
    public func retry(
        _ request: Request,
        after error: WaybillError,
        context: InterceptorContext
    ) async -> RetryDecision {
        guard covers(request, error) else { return .noOpinion }
        // Each failure counts, also that of a final attempt.
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

    private func covers(_ request: Request) -> Bool {
        commands?.contains(request.command.kind) ?? true
    }

    /// Whether the policy covers such a request and error.
    func covers(_ request: Request, _ error: WaybillError) -> Bool {
        (codes.contains(error.code) || error.isServerBusy)
            && covers(request) && condition(request, error)
    }
}
