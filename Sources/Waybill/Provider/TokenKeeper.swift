import WireCore

/// The token of an interceptor: who gets it, who waits for it, and when the source is asked.
final class TokenKeeper: Sendable {
    /// A token, and which one it is.
    struct Credential: Sendable {
        let token: String
        let version: Int
    }

    /// The calls of sources that the present task is part of.
    @TaskLocal private static var flights: [TokenFlight] = []

    private struct State: Sendable {
        var credential: Credential?
        var lastVersion = 0
        var flight: TokenFlight?
        /// When the source was asked, as far as it counts.
        var calls: [Duration] = []
        var failures = 0
        var lastFailure: WaybillError?
        var outlets = TokenOutlets()
    }

    /// What a request has to do for a token.
    private enum Step: Sendable {
        case take(Credential)
        case wait(TokenFlight)
        case start(TokenFlight)
        case fail(WaybillError)
    }

    private let source: any TokenSource
    private let configuration: TokenInterceptor.Configuration
    private let elapsed: @Sendable () -> Duration
    private let state = Locked(State())

    init(_ source: some TokenSource, _ configuration: TokenInterceptor.Configuration) {
        self.source = source
        self.configuration = configuration
        elapsed = configuration.clock.elapsedSinceNow()
    }

    /// Whether the present task is part of a call of this keeper's source.
    var isAskedBySource: Bool {
        let flights = Self.flights
        guard !flights.isEmpty else { return false }
        return flights.contains { $0.owner == ObjectIdentifier(self) && $0.isSourceAtWork }
    }

    // MARK: For requests

    /// The token, and how many refreshes have failed so far; waits for one that is under way.
    ///
    /// - Parameter memory: The request's.
    /// - Returns: Both.
    /// - Throws: `unauthorized`, `notConnected` when somebody disconnects, or `CancellationError`.
    func credential(for memory: RequestMemory) async throws -> (Credential, failures: Int) {
        let present = state.withLock { state in
            state.outlets.note(memory.events)
            return Self.present(state).map { ($0, failures: state.failures) }
        }
        if let present { return present }
        try memory.checkDisconnected()
        let now = elapsed()
        let (step, failures) = state.withLock { state in
            (Self.present(state).map(Step.take) ?? next(&state, now), state.failures)
        }
        return (try await take(step, memory), failures)
    }

    /// The token, unless it is being replaced.
    ///
    /// While nobody waits for another one the present one may do.
    private static func present(_ state: State) -> Credential? {
        state.flight?.isUnderWay == true ? nil : state.credential
    }

    /// Sees to it that there is another token than the one that a server has refused.
    ///
    /// - Parameters:
    ///   - use: What was refused.
    ///   - memory: The request's.
    /// - Returns: Whether the refusal came late: another token had taken its place already.
    /// - Throws: `unauthorized`, `notConnected` when somebody disconnects, or `CancellationError`.
    @discardableResult
    func replace(_ use: TokenUse, for memory: RequestMemory) async throws -> Bool {
        // Who was refused as somebody disconnected asks for no token that nobody would use.
        try memory.checkDisconnected()
        let now = elapsed()
        let step = state.withLock { state in
            guard let credential = Self.present(state) else { return next(&state, now) }
            // A late refusal: the token was replaced already.
            if credential.version != use.version { return Step.take(credential) }
            // A late refusal again: the token could not be replaced, and all others know.
            if state.failures > use.failures, let failure = state.lastFailure {
                return .fail(failure)
            }
            return next(&state, now)
        }
        _ = try await take(step, memory)
        if case .take = step { return true }
        return false
    }

    /// Discards the token; who waits for one fails.
    func forget() {
        let flight = state.withLock { state in
            defer {
                var fresh = State()
                fresh.lastVersion = state.lastVersion
                fresh.failures = state.failures
                fresh.outlets = state.outlets
                state = fresh
            }
            return state.flight
        }
        if let flight { reportEnd(of: flight, .failure(TokenFailure.discarded)) }
        flight?.settle(
            .failure(Self.error(Self.words(for: TokenFailure.discarded), TokenFailure.discarded))
        )
    }

    // MARK: The one call

    /// The call under way, or a new one if the breaker allows it.
    private func next(_ state: inout State, _ now: Duration) -> Step {
        if let flight = state.flight, flight.enter() { return .wait(flight) }
        state.calls.removeAll { $0 + configuration.refreshWindow <= now }
        guard state.calls.count < configuration.refreshLimit else {
            let words = "\(configuration.refreshLimit) times within \(configuration.refreshWindow)"
            return .fail(
                Self.error("a token was asked for \(words)", TokenFailure.tooManyRefreshes)
            )
        }
        let flight = TokenFlight(owner: ObjectIdentifier(self), refused: state.credential?.token)
        if flight.refused != nil { state.calls.append(now) }
        state.flight = flight
        return .start(flight)
    }

    private func take(_ step: Step, _ memory: RequestMemory) async throws -> Credential {
        switch step {
        case .take(let credential): return credential
        case .fail(let error): throw error
        case .wait(let flight): return try await flight.value(for: memory)
        case .start(let flight):
            start(flight)
            return try await flight.value(for: memory)
        }
    }

    private func start(_ flight: TokenFlight) {
        report(TransportEvent(flight.refused == nil ? .tokenRequested : .tokenRefreshing))
        let work = Task { @concurrent in
            let result: Result<String, any Error>
            do { result = .success(try await ask(flight)) } catch { result = .failure(error) }
            flight.noteSourceDone()
            finish(flight, result)
        }
        flight.keep(work)
        guard let limit = configuration.timeout else { return }
        let timer = Task { @concurrent in
            do { try await configuration.clock.sleep(for: limit) } catch { return }
            finish(flight, .failure(TokenFailure.timedOut))
        }
        flight.keep(timer)
    }

    private func ask(_ flight: TokenFlight) async throws -> String {
        try await Self.$flights.withValue(Self.flights + [flight]) {
            guard let refused = flight.refused else { return try await source.token() }
            return try await source.refresh(refused)
        }
    }

    private func finish(_ flight: TokenFlight, _ outcome: Result<String, any Error>) {
        reportEnd(of: flight, outcome)
        let isWanted = flight.isUnderWay
        let now = elapsed()
        let result = state.withLock { state -> Result<Credential, WaybillError>? in
            // Another call has taken its place, or the token was discarded.
            guard state.flight === flight else { return nil }
            state.flight = nil
            switch outcome {
            case .success(let token):
                // Also what nobody waits for any more: the one before may be void by now.
                state.lastVersion += 1
                let credential = Credential(token: token, version: state.lastVersion)
                state.credential = credential
                return .success(credential)
            case .failure(let error):
                guard isWanted else { return nil }
                if flight.refused == nil { state.calls.append(now) }
                let failure = Self.error(Self.words(for: error), error)
                state.failures += 1
                state.lastFailure = failure
                return .failure(failure)
            }
        }
        if let result { flight.settle(result) }
    }

    // MARK: Events

    private func report(_ event: @autoclosure () -> TransportEvent) {
        let sources = state.withLock { $0.outlets.sources }.filter(\.isObserved)
        guard !sources.isEmpty else { return }
        let event = event()
        for source in sources { source.report(event) }
    }

    private func reportEnd(of flight: TokenFlight, _ outcome: Result<String, any Error>) {
        guard flight.takeReport() else { return }
        switch outcome {
        case .success: report(TransportEvent(.tokenReceived, since: flight.begun))
        case .failure(let failure):
            var event = TransportEvent(.tokenFailed, since: flight.begun)
            event.error = Self.error(Self.words(for: failure), failure)
            report(event)
        }
    }

    private static func words(for error: any Error) -> String {
        switch error as? TokenFailure {
        case .timedOut: "the token source has not answered in time"
        case .discarded: "the token was discarded"
        default: "the token source failed"
        }
    }

    private static func error(_ message: String, _ underlying: any Error) -> WaybillError {
        var error = WaybillError(.unauthorized, message, underlying: underlying)
        error.mayPass = CredentialSource.isPassing(underlying)
        return error
    }
}
