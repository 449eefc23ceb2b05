import HTTPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Requests over connections that are kept for the next one.
final class HTTPPool: Sendable {
    /// A response, whole.
    struct Response: Sendable {
        var head: HTTPResponseHead
        var body: [UInt8]
        var tls: NegotiatedTLS?
    }

    private struct State: Sendable {
        var idle: [HTTPExchange] = []
        var busy: [ObjectIdentifier: HTTPExchange] = [:]
        /// The connections that are being made.
        var attempts: [UInt64: Task<HTTPExchange, any Error>] = [:]
        var lastAttempt: UInt64 = 0
        var isShutDown = false
    }

    /// How many connections are kept.
    private static let idleLimit = 4

    private let configuration: SSEConfiguration
    private let links: HTTPLinks
    private let events: TransportEventSource
    private let state = Locked(State())

    init(configuration: SSEConfiguration, links: HTTPLinks, events: TransportEventSource) {
        self.configuration = configuration
        self.links = links
        self.events = events
    }

    /// Makes a request and follows where it leads.
    /// - Throws: `WaybillError`, `CancellationError`.
    func response(
        to plan: HTTPRequestPlan,
        _ request: Request,
        _ timeout: Duration?
    ) async throws -> Response {
        var plan = plan
        for _ in 0...max(configuration.maximumRedirects, 0) {
            let response: Response
            do {
                // A redirect counts from the host that has answered.
                (response, plan.target) = try await exchange(
                    plan,
                    timeout ?? configuration.responseTimeout
                )
            } catch let error as WaybillError {
                throw error.about(request)
            }
            let isRedirect =
                HTTPRequestPlan.isRedirect(response.head.status)
                && response.head.headers.first("location") != nil
            guard isRedirect else { return response }
            plan = try plan.redirected(by: response.head)
        }
        let limit = configuration.maximumRedirects
        throw WaybillError(.rejected, "more than \(limit) redirects").about(request)
    }

    /// Methods that do no harm when they are repeated (RFC 9110, 9.2.2).
    private static let idempotent: Set = ["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"]

    /// - Returns: The response, and where it has come from.
    private func exchange(
        _ plan: HTTPRequestPlan,
        _ timeout: Duration
    ) async throws -> (Response, HTTPTarget) {
        if let kept = takeIdle(for: plan) {
            do {
                return try await use(kept, plan, timeout)
            } catch let error as WaybillError
                where error.code == .connectionLost && !kept.hasAnswered
                && Self.idempotent.contains(plan.method)
            {
                // The server had closed what was kept; a fresh connection knows nothing of that.
            }
        }
        return try await use(try await connect(for: plan), plan, timeout)
    }

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
            // In one step, so that whoever shuts down finds it here or there.
            if case .success(let made) = result { state.busy[ObjectIdentifier(made)] = made }
            return state.isShutDown
        }
        if case .failure = result, isShutDown { throw WaybillError.shutDown }
        return try result.get()
    }

    private func open(_ target: HTTPTarget) async throws -> HTTPExchange {
        let begun = ContinuousClock.now
        events.report(.connecting(to: target.host))
        do {
            let link = try await links.open(target, within: configuration.connectTimeout)
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
            state.busy[ObjectIdentifier(exchange)] = exchange
            return state.isShutDown
        }
        defer { release(exchange) }
        guard !isShutDown else { throw WaybillError.shutDown }
        return (try await exchange.response(to: plan, timeout), plan.target)
    }

    private func takeIdle(for plan: HTTPRequestPlan) -> HTTPExchange? {
        state.withLock { state in
            state.idle.removeAll { !$0.isUsable }
            let index = state.idle.lastIndex { links.canTake(plan, to: $0.target) }
            return index.map { state.idle.remove(at: $0) }
        }
    }

    private func release(_ exchange: HTTPExchange) {
        let surplus = state.withLock { state -> HTTPExchange? in
            state.busy[ObjectIdentifier(exchange)] = nil
            guard exchange.isUsable, !state.isShutDown else { return exchange }
            state.idle.append(exchange)
            return state.idle.count > Self.idleLimit ? state.idle.removeFirst() : nil
        }
        surplus?.close(failing: nil)
    }

    func closeIdle() {
        let idle = state.withLock { state in
            defer { state.idle = [] }
            return state.idle
        }
        for exchange in idle { exchange.close(failing: nil) }
    }

    /// Closes everything and waits for it; requests under way fail with `shutDown`.
    func shutdown() async {
        let (attempts, there) = state.withLock { state in
            state.isShutDown = true
            defer { state.idle = [] }
            return (Array(state.attempts.values), state.idle + state.busy.values)
        }
        for attempt in attempts { attempt.cancel() }
        var all = there
        for attempt in attempts {
            if let made = try? await attempt.value { all.append(made) }
        }
        for exchange in all { exchange.close(failing: .shutDown) }
        for exchange in all { await exchange.ended.settled() }
    }
}

/// One connection and the request that is under way on it.
final class HTTPExchange: Sendable {
    private struct State: Sendable {
        var pending: Promise<HTTPPool.Response>?
        var head: HTTPResponseHead?
        var body: [UInt8] = []
        var decoder: HTTPContentDecoder?
        var isUsable = true
        var hasAnswered = false
    }

    let target: HTTPTarget
    /// Resolves when the stream is closed.
    let ended = Promise<Void>()
    private let state = Locked(State())
    private let driver: Driver<HTTPClientConnection>
    private let configuration: SSEConfiguration
    private let events: TransportEventSource
    private let tls: NegotiatedTLS?

    init(
        _ link: OpenedLink,
        target: HTTPTarget,
        configuration: SSEConfiguration,
        events: TransportEventSource
    ) {
        self.target = target
        self.configuration = configuration
        self.events = events
        tls = link.tls
        driver = Driver(
            core: HTTPClientConnection(limitsWhole: true),
            stream: link.stream,
            timers: link.timers
        )
        let begun = ContinuousClock.now
        // The driver lets go of the handler after the end, and of this exchange with it.
        driver.start(
            .init(
                receive: { self.handle($0) },
                end: { error in
                    link.timers.invalidate()
                    let cause = error.map { WaybillError($0) }
                    events.report(.disconnected(from: target.host, since: begun, cause: cause))
                    self.fail(cause ?? WaybillError(.closed))
                    self.ended.resolve(.success(()))
                }
            )
        )
    }

    /// Whether another request can be made.
    var isUsable: Bool { state.withLock { $0.isUsable && $0.pending == nil } }

    /// Whether the request under way, or the last, has had an answer.
    var hasAnswered: Bool { state.withLock { $0.hasAnswered } }

    func response(
        to plan: HTTPRequestPlan,
        _ timeout: Duration
    ) async throws -> HTTPPool.Response {
        let promise = Promise<HTTPPool.Response>(onAbandoned: { [driver] in driver.close() })
        state.withLock { state in
            state.pending = promise
            state.head = nil
            state.body = []
            state.decoder = nil
            state.hasAnswered = false
        }
        log(.outbound, plan.description, plan.body.count)
        let codings = configuration.acceptsCompression ? HTTPContentDecoder.acceptedCodings : nil
        do {
            try driver.withCore(.immediate) { (core, now) throws(HTTPRequestError) in
                try core.send(
                    plan.head(adding: [("Accept-Encoding", codings ?? "identity")]),
                    body: plan.body,
                    timeout: timeout,
                    at: now
                )
            }
            events.report(.sent(topic: plan.topic, byteCount: plan.body.count))
        } catch {
            fail(SSEMapping.error(error))
        }
        do {
            return try await promise.value()
        } catch {
            close(failing: nil)
            throw error
        }
    }

    func close(failing error: WaybillError?) {
        if let error { fail(error) }
        state.withLock { $0.isUsable = false }
        driver.close()
    }

    private func fail(_ error: WaybillError) {
        let pending = state.withLock { state in
            state.isUsable = false
            return state.pending.take()
        }
        pending?.resolve(.failure(error))
    }

    private func handle(_ events: [HTTPClientConnection.Event]) {
        for event in events {
            switch event {
            case .head(let head): begin(head)
            case .body(let slice): if !take(slice) { driver.close() }
            case .end(_, let isReusable): finish(isReusable)
            // Whatever ended the connection is told behind this.
            case .closed(.endOfStream): state.withLock { $0.isUsable = false }
            case .closed(let closure): fail(SSEMapping.error(closure))
            }
        }
    }

    private func begin(_ head: HTTPResponseHead) {
        log(.inbound, SSEMapping.reason(head))
        let codings = head.headers.members("content-encoding")
            .filter { !HTTPSyntax.areSameName($0, "identity") }
        // What is not known, or coded more than once, is left to whoever has asked for it.
        let decoder = codings.count == 1 ? HTTPContentDecoder(coding: codings[0]) : nil
        state.withLock { state in
            state.head = head
            state.hasAnswered = true
            state.decoder = decoder
        }
    }

    /// Gathers the body, up to the limit.
    private func take(_ slice: ByteSlice) -> Bool {
        let limit = configuration.maximumEventSize
        let isFine = state.withLock { state in
            func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
                guard state.body.count + bytes.count <= limit else { return false }
                state.body += bytes
                return true
            }
            guard let decoder = state.decoder else { return slice.withUnsafeBytes(append) }
            return decoder.decode(slice, append)
        }
        if !isFine {
            fail(
                WaybillError(
                    .limitExceeded,
                    "the response is longer than \(limit) bytes, or broken"
                )
            )
        }
        return isFine
    }

    private func finish(_ isReusable: Bool) {
        if state.withLock({ $0.decoder?.isIncomplete ?? false }) {
            fail(WaybillError(.protocolViolation, "the compressed response was cut short"))
            return driver.close()
        }
        let (pending, response) = state.withLock { state in
            if !isReusable { state.isUsable = false }
            let response = state.head.map {
                HTTPPool.Response(head: $0, body: state.body, tls: tls)
            }
            state.body = []
            return (state.pending.take(), response)
        }
        guard let pending, let response else { return }
        pending.resolve(.success(response))
    }

    private func log(
        _ direction: WireRecord.Direction,
        _ text: @autoclosure () -> String,
        _ byteCount: Int = 0
    ) {
        guard let logger = configuration.wireLogger else { return }
        let record = WireRecord(
            kind: .frame,
            direction: direction,
            text: text(),
            byteCount: byteCount
        )
        logger.log(record)
    }
}
