import WireCore

/// The token of an interceptor, the requests that wait for it, and the calls of its source.
final class TokenCache: Sendable {
    struct Credential: Sendable {
        let token: String
        let version: Int
    }

    /// The source calls that the present task belongs to.
    @TaskLocal private static var flights: [TokenFlight] = []

    private struct State: Sendable {
        var credential: Credential?
        var lastVersion = 0
        var flight: TokenFlight?
        /// The times of the source calls within the window.
        var calls: [Duration] = []
        var failures = 0
        var lastFailure: WaybillError?
        var outlets = TokenOutlets()
    }

    /// The next step of a request that needs a token.
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

    /// Whether the present task belongs to a call of this cache's source.
    var isAskedBySource: Bool {
        let flights = Self.flights
        guard !flights.isEmpty else { return false }
        return flights.contains { $0.owner == ObjectIdentifier(self) && $0.isSourceAtWork }
    }

    // MARK: For requests

    /// Returns the token and the number of failed refreshes so far; waits for a refresh in progress.
    ///
    /// - Parameter memory: The memory of the request.
    /// - Returns: The token and the number.
    /// - Throws: `unauthorized`; `notConnected` if a disconnect is requested; `CancellationError`.
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
    private static func present(_ state: State) -> Credential? {
        state.flight?.isUnderWay == true ? nil : state.credential
    }

    /// Ensures that there is another token than the refused one.
    ///
    /// - Parameters:
    ///   - use: The refused token.
    ///   - memory: The memory of the request.
    /// - Returns: Whether the refusal was late: another token was already in place.
    /// - Throws: `unauthorized`; `notConnected` if a disconnect is requested; `CancellationError`.
    @discardableResult
    func replace(_ use: TokenUse, for memory: RequestMemory) async throws -> Bool {
        // A request that was refused during a disconnect would not use a new token.
        try memory.checkDisconnected()
        let now = elapsed()
        let step = state.withLock { state in
            guard let credential = Self.present(state) else { return next(&state, now) }
            // A late refusal: the token was already replaced.
            if credential.version != use.version { return Step.take(credential) }
            // A late refusal: the attempt to replace the token failed, and all other requests have that error.
            if state.failures > use.failures, let failure = state.lastFailure {
                return .fail(failure)
            }
            return next(&state, now)
        }
        _ = try await take(step, memory)
        if case .take = step { return true }
        return false
    }

    /// Discards the token; requests that wait for one fail.
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
        flight?.resolve(
            .failure(Self.error(Self.words(for: TokenFailure.discarded), TokenFailure.discarded))
        )
    }

    // MARK: The one call

    /// The present call, or a new one if the limit allows it.
    private func next(_ state: inout State, _ now: Duration) -> Step {
        if let flight = state.flight, flight.isUnderWay { return .wait(flight) }
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
        let now = elapsed()
        let result = state.withLock { state -> Result<Credential, WaybillError>? in
            // Another call has replaced this one, or the token was discarded.
            guard state.flight === flight else { return nil }
            state.flight = nil
            switch outcome {
            case .success(let token):
                // Also without a waiting request: the token before may be invalid by now.
                state.lastVersion += 1
                let credential = Credential(token: token, version: state.lastVersion)
                state.credential = credential
                return .success(credential)
            case .failure(let error):
                if flight.refused == nil { state.calls.append(now) }
                let failure = Self.error(Self.words(for: error), error)
                state.failures += 1
                state.lastFailure = failure
                return .failure(failure)
            }
        }
        if let result { flight.resolve(result) }
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
            let error = Self.error(Self.words(for: failure), failure)
            report(TransportEvent(.tokenFailed, since: flight.begun, error: error))
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
