import HTTPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Requests over connections that are kept for the next one, so many to a host at the most.
///
/// Event streams have connections of their own, which do not count here.
final class HTTPPool: Sendable {
    /// A response, whole.
    struct Response: Sendable {
        var head: HTTPResponseHead
        var body: [UInt8]
        var tls: NegotiatedTLS?
    }

    /// A connection that an earlier request has left; nil for a place, to make one.
    private typealias Waiter = Promise<HTTPExchange?>

    private struct State: Sendable {
        var places: HTTPPlaces<HTTPTarget.Origin, HTTPExchange, Waiter>
        /// The connections that are in use, in the order in which their requests came: a few for each host.
        var busy: [HTTPExchange] = []
        /// The connections that are being made.
        var attempts: [UInt64: Task<HTTPExchange, any Error>] = [:]
        var lastAttempt: UInt64 = 0
        var isShutDown = false

        mutating func noteBusy(_ exchange: HTTPExchange) {
            if !busy.contains(where: { $0 === exchange }) { busy.append(exchange) }
        }

        mutating func noteFree(_ exchange: HTTPExchange) {
            busy.removeAll { $0 === exchange }
        }
    }

    private let configuration: SSEConfiguration
    private let links: HTTPLinks
    private let clock: any TimerSource
    private let events: TransportEventSource
    private let state: Locked<State>

    init(configuration: SSEConfiguration, links: HTTPLinks, events: TransportEventSource) {
        self.configuration = configuration
        self.links = links
        clock = links.plain.clock
        self.events = events
        let limit = configuration.limits.connectionsPerHost
        state = Locked(State(places: HTTPPlaces(limit: limit) { $0.isUsable }))
    }

    /// The number of connections that are in use.
    var busyCount: Int { state.withLock { $0.busy.count } }

    /// Makes a request and follows where it leads.
    /// - Throws: `WaybillError`, `CancellationError`.
    func response(
        to plan: HTTPRequestPlan,
        _ request: Request,
        _ timeout: Duration?
    ) async throws -> Response {
        var plan = plan
        var left = timeout ?? configuration.timeouts.confirmation
        for _ in 0...max(configuration.limits.redirects, 0) {
            let response: Response
            do {
                // A redirect counts from the host that has answered, and its time is what is left of the first one's.
                (response, plan.target, left) = try await exchange(plan, left)
            } catch let error as WaybillError {
                throw error.about(request)
            }
            let isRedirect =
                HTTPRequestPlan.isRedirect(response.head.status)
                && response.head.headers.first("location") != nil
            guard isRedirect else { return response }
            plan = try plan.redirected(by: response.head)
        }
        let limit = configuration.limits.redirects
        throw WaybillError(.rejected, "more than \(limit) redirects").about(request)
    }

    /// Methods that do no harm when they are repeated (RFC 9110, 9.2.2).
    private static let idempotent: Set = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"]

    /// - Returns: The response, where it has come from, and what is left of the time.
    private func exchange(
        _ plan: HTTPRequestPlan,
        _ timeout: Duration
    ) async throws -> (Response, HTTPTarget, left: Duration) {
        let host = links.host(for: plan)
        var (kept, left) = try await connection(for: plan, host, within: timeout)
        if let kept {
            let begun = kept.now
            do {
                let (response, target) = try await use(kept, plan, left)
                release(kept, host)
                return (response, target, max(left - begun.duration(to: kept.now), .zero))
            } catch {
                let code = (error as? WaybillError)?.code
                let isUnheard = !kept.hasAnswered
                if isUnheard, code == .connectionLost || code == .timedOut {
                    closeDoubtful(host, begun)
                }
                // Repeated if nothing of it was written, or if it does no harm twice (RFC 9110, 9.2.2).
                let canRepeat =
                    kept.hasWrittenNothing || Self.idempotent.contains(plan.method)
                guard isUnheard, code == .connectionLost, canRepeat else {
                    release(kept, host)
                    throw error
                }
                // The server had closed what was kept. A fresh connection takes its place, for the rest of the time.
                state.withLock { $0.noteFree(kept) }
                left = max(left - begun.duration(to: kept.now), .zero)
            }
        }
        let made: HTTPExchange
        do {
            made = try await connect(for: plan)
        } catch {
            release(nil, host)
            throw error
        }
        defer { release(made, host) }
        // The time to make a connection does not count.
        let begun = made.now
        let (response, target) = try await use(made, plan, left)
        return (response, target, max(left - begun.duration(to: made.now), .zero))
    }

    /// Closes the idle connections to a host that have brought nothing since another one, which leads nowhere, was used.
    ///
    /// They were kept as long, and may lead nowhere either: each of them would cost a request.
    private func closeDoubtful(_ host: HTTPTarget.Origin, _ since: WireInstant) {
        let doubtful = state.withLock { state in
            state.places.takeIdle(host) { $0.lastAnswer.map { $0 <= since } ?? true }
        }
        for exchange in doubtful { exchange.close(failing: nil) }
    }

    // MARK: Places

    /// Waits for a connection to a host, or a place to make one.
    ///
    /// - Returns: The connection, or nil for a place; and what is left of the time.
    /// - Throws: `timedOut`, `shutDown`, `CancellationError`.
    private func connection(
        for plan: HTTPRequestPlan,
        _ host: HTTPTarget.Origin,
        within timeout: Duration
    ) async throws -> (HTTPExchange?, left: Duration) {
        let waiter = Waiter()
        let (answer, dropped) = try state.withLock { state in
            guard !state.isShutDown else { throw WaybillError.shutDown }
            return state.places.request(host, for: waiter) { [links] in
                links.canTake(plan, to: $0.target)
            }
        }
        for exchange in dropped { exchange.close(failing: nil) }
        switch answer {
        case .granted(let kept): return (kept, timeout)
        case .waits(let number): return try await wait(number, host, waiter, within: timeout)
        }
    }

    private func wait(
        _ number: UInt64,
        _ host: HTTPTarget.Origin,
        _ waiter: Waiter,
        within timeout: Duration
    ) async throws -> (HTTPExchange?, left: Duration) {
        do {
            let begun = clock.now
            guard let kept = try await waiter.value(within: timeout, by: clock) else {
                let message = "no connection to the host was free within the time allowed"
                throw WaybillError(.timedOut, message)
            }
            return (kept, max(timeout - begun.duration(to: clock.now), .zero))
        } catch {
            if !state.withLock({ $0.places.withdraw(number, host) }) {
                // What has come in the meantime is for the next request.
                await waiter.waitUntilResolved()
                if case .success(let kept)? = waiter.result { release(kept, host) }
            }
            throw error
        }
    }

    /// Takes a connection back: for the next request, or as a place if it is over; nil if none was made.
    private func release(_ exchange: HTTPExchange?, _ host: HTTPTarget.Origin) {
        let usable = exchange.flatMap { $0.isUsable ? $0 : nil }
        let (woken, surplus) = state.withLock { state in
            if let exchange { state.noteFree(exchange) }
            guard let usable, !state.isShutDown else { return (state.places.free(host), exchange) }
            return state.places.giveBack(host, usable)
        }
        if let (waiter, kept) = woken { waiter.resolve(.success(kept)) }
        surplus?.close(failing: nil)
    }

    // MARK: Connections

    /// Connects to the first host that can be reached, in a task of its own, which ``shutdown()`` breaks off.
    private func connect(for plan: HTTPRequestPlan) async throws -> HTTPExchange {
        let (number, task) = try state.withLock { state in
            guard !state.isShutDown else { throw WaybillError.shutDown }
            let task = Task { @concurrent [self] in
                try await links.first(for: plan) { plan in try await open(plan.target) }
            }
            state.lastAttempt += 1
            state.attempts[state.lastAttempt] = task
            return (state.lastAttempt, task)
        }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        let isShutDown = state.withLock { state in
            state.attempts[number] = nil
            // Under one lock, so that a shutdown finds the connection as an attempt or as a busy connection.
            if case .success(let made) = result { state.noteBusy(made) }
            return state.isShutDown
        }
        if case .failure = result, isShutDown { throw WaybillError.shutDown }
        return try result.get()
    }

    private func open(_ target: HTTPTarget) async throws -> HTTPExchange {
        let begun = ContinuousClock.now
        events.report(.connecting(to: target.host))
        do {
            let link = try await links.open(target, within: configuration.timeouts.connect)
            events.report(.connected(to: target.host, since: begun))
            return HTTPExchange(link, target: target, configuration: configuration, events: events)
        } catch {
            let error = error
            let cause = error as? WaybillError ?? .shutDown
            events.report(.connectionFailed(to: target.host, since: begun, error: cause))
            throw error
        }
    }

    private func use(
        _ exchange: HTTPExchange,
        _ plan: HTTPRequestPlan,
        _ timeout: Duration
    ) async throws -> (Response, HTTPTarget) {
        var plan = plan
        plan.target.address = exchange.target.address
        let isShutDown = state.withLock { state in
            state.noteBusy(exchange)
            return state.isShutDown
        }
        guard !isShutDown else { throw WaybillError.shutDown }
        return (try await exchange.response(to: plan, timeout), plan.target)
    }

    func closeIdle() {
        let idle = state.withLock { $0.places.takeIdle() }
        for exchange in idle { exchange.close(failing: nil) }
    }

    /// Closes everything and waits for it; requests under way fail with `shutDown`.
    func shutdown() async {
        let (attempts, there, waiters) = state.withLock { state in
            state.isShutDown = true
            let there = state.places.takeIdle() + state.busy
            return (state.attempts.valuesInKeyOrder, there, state.places.takeWaiting())
        }
        for waiter in waiters { waiter.resolve(.failure(WaybillError.shutDown)) }
        for attempt in attempts { attempt.cancel() }
        var all = there
        for attempt in attempts {
            if let made = try? await attempt.value { all.append(made) }
        }
        for exchange in all { exchange.close(failing: .shutDown.arriving(true)) }
        for exchange in all { await exchange.ended.waitUntilResolved() }
    }
}
