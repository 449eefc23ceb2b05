import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Sends the requests that an earlier process has left in the store, beside those of this one.
///
/// HTTP has no connection whose begin could send them. The first request or stream of the transport begins it, with the
/// interceptors of its provider. They are sent one after another, in order, except behind one that fails.
///
/// | a request | then |
/// | --- | --- |
/// | a response with 2xx | removed from the store, and reported |
/// | an error that the interceptors retry | sent again, as they say |
/// | the server cannot be reached | all wait, as the reconnection policy says |
/// | any other error that may pass, an interceptor fails or spoils it, or a token is missing | sent again after that wait; the others are sent before |
/// | it has an option that this process does not know, or that no interceptor takes out | waits for a process that knows it, and is reported once |
/// | any other error, or it has expired | given up, and reported |
/// | the app disconnects or pauses | sent again after the next request, or when the pause is over |
/// | the transport is shut down, or the policy has no further attempt | stays for the next transport |
final class SSELeftMessages: Sendable {
    private typealias Work = @Sendable () async -> Void

    private enum State: Sendable {
        case idle
        case running(Task<Void, Never>, Work)
        /// The task was cancelled and is about to end.
        case paused(Task<Void, Never>, Work)
        case ended
    }

    private let left: LeftMessages
    private let policy: ReconnectionPolicy
    private let environment: LinkEnvironment
    private let state = Locked(State.idle)

    /// - Parameters:
    ///   - left: The messages.
    ///   - policy: The waits between attempts.
    ///   - environment: Provides the clock and random numbers.
    init(_ left: LeftMessages, _ policy: ReconnectionPolicy, in environment: LinkEnvironment) {
        self.left = left
        self.policy = policy
        self.environment = environment
    }

    /// Begins to send; does nothing while it sends.
    ///
    /// - Parameters:
    ///   - chain: The interceptors of a provider; nil without any.
    ///   - check: Throws the reason why a request can never be sent.
    ///   - send: Sends a request.
    func begin(
        _ chain: RequestChain?,
        checking check: @escaping @Sendable (Request) throws(WaybillError) -> Void,
        _ send: @escaping @Sendable (Request) async throws -> Receipt
    ) {
        guard !left.isEmpty(for: chain) else { return }
        let work: Work = { [self] in
            // Without a result it was cancelled.
            guard let isOver = try? await run(chain, checking: check, send) else { return }
            state.withLock { if case .running = $0 { $0 = isOver ? .ended : .idle } }
        }
        state.withLock { state in
            switch state {
            case .idle: state = .running(Task { @concurrent in await work() }, work)
            case .paused(let former, _): Self.run(work, after: former, &state)
            case .running, .ended: break
            }
        }
    }

    private static func run(
        _ work: @escaping Work,
        after former: Task<Void, Never>,
        _ state: inout State
    ) {
        let task = Task { @concurrent in
            await former.value
            await work()
        }
        state = .running(task, work)
    }

    /// Stops until ``resume()``, or until a request begins to send.
    func pause() {
        let task: Task<Void, Never>? = state.withLock { state in
            guard case .running(let task, let work) = state else { return nil }
            state = .paused(task, work)
            return task
        }
        task?.cancel()
    }

    /// Goes on after ``pause()``.
    func resume() {
        state.withLock { state in
            if case .paused(let former, let work) = state { Self.run(work, after: former, &state) }
        }
    }

    /// Ends without waiting.
    func end() {
        let task: Task<Void, Never>? = state.withLock { state in
            defer { state = .ended }
            guard case .running(let task, _) = state else { return nil }
            return task
        }
        task?.cancel()
    }

    /// Sends until there is nothing to do.
    ///
    /// - Returns: Whether the policy has no further attempt.
    /// - Throws: `CancellationError`.
    private func run(
        _ chain: RequestChain?,
        checking check: (Request) throws(WaybillError) -> Void,
        _ send: (Request) async throws -> Receipt
    ) async throws -> Bool {
        func packet(_ message: StoredMessage, _ request: Request) throws(WaybillError) -> Request {
            try check(request)
            return request
        }
        var schedule = ReconnectionSchedule(policy)
        while !left.isEmpty(for: chain) {
            var failure = WaybillError(.interceptorFailed, "an interceptor has failed")
            for item in try await left.prepare(chain, packet: packet) {
                if case .failure(let error) = item.packet {
                    finish(item.message, error)
                    continue
                }
                try Task.checkCancellation()
                do {
                    try await self.send(item, send)
                    schedule.restart()
                } catch let error as WaybillError {
                    failure = error
                    // One that the server answers by an error or by closing must not keep the others away.
                    if error.code == .connectionRefused, !(error.underlying is HTTPRefusal) {
                        break
                    }
                }
            }
            guard !left.isEmpty(for: chain) else { break }
            let cause = WaybillError(.connectionLost, failure.message, restating: failure)
            let (now, random) = (environment.clock.now, environment.random)
            guard let delay = schedule.delay(after: cause, at: now, random: random) else {
                return true
            }
            _ = try await Promise<Void>().value(within: delay, by: environment.clock)
        }
        return false
    }

    /// Sends one message, as often as the interceptors say.
    ///
    /// - Throws: A `WaybillError` if it is to be sent later; `CancellationError`.
    private func send(
        _ item: LeftMessages.Prepared<Request>,
        _ send: (Request) async throws -> Receipt
    ) async throws {
        var (request, attempts) = (item.packet, item.attempts)
        do {
            while true {
                do {
                    _ = try await send(request.get())
                    return finish(item.message, nil)
                } catch let error as WaybillError {
                    guard error.code != .shutDown, attempts != nil else { throw error }
                    try await attempts?.waitForRetry(after: error)
                    if let next = try await attempts?.next() { request = .success(next) }
                }
            }
        } catch let error as WaybillError {
            let lacksToken =
                error.code == .unauthorized && item.attempts == nil && item.message.needsToken
            let mayPass = error.isRetryable || error.code == .interceptorFailed || lacksToken
            guard error.code != .shutDown, !mayPass else { throw error }
            // Interceptors give up, too, when the app disconnects.
            try Task.checkCancellation()
            finish(item.message, error)
        }
    }

    private func finish(_ message: StoredMessage, _ error: WaybillError?) {
        left.take([message.id])
        left.end(message, error)
    }
}
