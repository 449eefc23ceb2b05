import HTTPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One connection and the request that is under way on it.
final class HTTPExchange: Sendable {
    private struct State: Sendable {
        var pending: Promise<HTTPPool.Response>?
        /// The topic of the request, for the wire logger; empty without one.
        var loggedTopic = ""
        var head: HTTPResponseHead?
        /// One byte beyond the limit tells that the body is longer.
        var body = HTTPBodyCollector(limit: 0)
        /// Whether the request asks for more than `identity`.
        var isInvited = true
        var isUsable = true
        var lastAnswer: WireInstant?
        /// The bytes of the request under way, or of the last one.
        var requestByteCount = 0
        /// When the server may have closed what is kept, by its `Keep-Alive`; nil where it has not said so.
        var keptUntil: WireInstant?
    }

    let target: HTTPTarget
    /// Resolves when the stream is closed.
    let ended = Promise<Void>()
    private let state = Locked(State())
    private let driver: Driver<HTTPClientConnection>
    private let configuration: SSEConfiguration
    private let events: TransportEventSource
    private let tls: NegotiatedTLS?
    private let stream: any ByteStream
    private let timers: any TimerSource

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
        stream = link.stream
        timers = link.timers
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
                    let cause = error.map { WaybillError($0) }
                    events.report(.disconnected(from: target.host, since: begun, cause: cause))
                    self.finish(cause ?? WaybillError(.closed))
                    self.ended.resolve(.success(()))
                }
            )
        )
    }

    /// Whether another request can be made.
    ///
    /// False when bytes wait to be read although no request is under way: mostly the end of the connection, which the event
    /// loop has not seen yet. False, too, when the time is up for which the server keeps the connection.
    var isUsable: Bool {
        let now = timers.now
        let isFree = state.withLock { state in
            state.isUsable && state.pending == nil && (state.keptUntil.map { now < $0 } ?? true)
        }
        return isFree && !stream.hasInput
    }

    var now: WireInstant { timers.now }

    /// Whether the request under way, or the last, has had an answer.
    var hasAnswered: Bool { state.withLock { $0.head != nil } }

    /// When the last answer began; nil before the first.
    var lastAnswer: WireInstant? { state.withLock { $0.lastAnswer } }

    /// Whether no byte of the request under way, or of the last one, has been handed to the stream.
    ///
    /// What is unsent ends with that request: it was written last.
    var hasWrittenNothing: Bool {
        let byteCount = state.withLock { $0.requestByteCount }
        return driver.unsentByteCount >= byteCount
    }

    func response(
        to plan: HTTPRequestPlan,
        _ timeout: Duration
    ) async throws -> HTTPPool.Response {
        let promise = Promise<HTTPPool.Response>(onAbandoned: { [driver] in driver.close() })
        state.withLock { state in
            state.isInvited = plan.invitesCompression(configuration)
            state.pending = promise
            if configuration.wireLogger != nil { state.loggedTopic = plan.topic }
            state.head = nil
            state.requestByteCount = 0
            state.keptUntil = nil
        }
        configuration.log(
            .outbound,
            name: plan.method,
            topic: plan.topic,
            plan.description,
            plan.body
        )
        let head = plan.head(configuration)
        do {
            try driver.withCore(.immediate) { (core, now) throws(HTTPRequestError) in
                let unsent = core.outboundByteCount
                try core.send(head, body: plan.body, timeout: timeout, at: now)
                // Counted before anything of it can leave.
                let byteCount = core.outboundByteCount - unsent
                state.withLock { $0.requestByteCount = byteCount }
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

    // MARK: Answers

    private func handle(_ events: [HTTPClientConnection.Event]) {
        // A request that is answered may be followed by the next one at once, on a connection that is over.
        if case .closed? = events.last { state.withLock { $0.isUsable = false } }
        for event in events {
            switch event {
            case .head(let head): begin(head)
            case .body(let slice): take(slice)
            case .end(_, let isReusable): finish(nil, isReusable: isReusable)
            // What ended the connection is told behind this.
            case .closed(.endOfStream): break
            case .closed(let closure): finish(SSEMapping.error(closure))
            }
        }
    }

    private func begin(_ head: HTTPResponseHead) {
        configuration.log(
            .inbound,
            name: "\(head.status)",
            topic: state.withLock { $0.loggedTopic },
            SSEMapping.reason(head)
        )
        let codings = head.headers.members("content-encoding")
            .filter { !HTTPSyntax.areSameName($0, "identity") }
        let now = timers.now
        let keptUntil = Self.keepAliveTime(of: head).map { now.advanced(by: $0) }
        let uninvited = state.withLock { state in
            state.head = head
            state.lastAnswer = now
            state.keptUntil = keptUntil
            let coding = codings.count == 1 ? codings[0] : nil
            // A body with an unknown coding, or with several, is left to the caller.
            state.body = HTTPBodyCollector(
                limit: Self.isRefusal(head) ? HTTPBodyCollector.refusalLimit : limit + 1,
                decoder: state.isInvited ? coding.flatMap { HTTPContentDecoder(coding: $0) } : nil
            )
            let isUninvited =
                !state.isInvited && codings.contains(where: HTTPContentDecoder.isKnown)
            return isUninvited && !Self.isRefusal(head) ? codings.first : nil
        }
        if Self.isRefusal(head) { driver.withCore { core, _ in core.limitRefusal() } }
        guard let uninvited else { return }
        fail(SSEMapping.uninvited(uninvited))
        driver.close()
    }

    /// How long the server keeps the connection, less a margin for what is under way; nil where it does not say.
    ///
    /// The field is not in a standard any longer (RFC 2068, 19.7.1), but servers send it.
    private static func keepAliveTime(of head: HTTPResponseHead) -> Duration? {
        for parameter in head.headers.members("keep-alive") {
            let parts = parameter.utf8.split(separator: UInt8(ascii: "="), maxSplits: 1)
                .map { HTTPSyntax.trimmed(Substring($0)) }
            guard parts.count == 2, HTTPSyntax.areSameName(parts[0], "timeout"),
                let seconds = HTTPSyntax.number(parts[1])
            else { continue }
            let time = Duration.seconds(min(seconds, 1 << 32))
            return time - min(.seconds(1), time / 2)
        }
        return nil
    }

    private static func isRefusal(_ head: HTTPResponseHead) -> Bool {
        !(200..<300).contains(head.status)
    }

    /// Gathers the body, up to the limit.
    private func take(_ slice: ByteSlice) {
        let (wantsMore, isFull) = state.withLock { ($0.body.append(slice), $0.body.isFull) }
        guard !wantsMore else { return }
        finish(
            isFull
                ? WaybillError(.limitExceeded, "the response is longer than \(limit) bytes")
                : SSEMapping.invalidCoding
        )
        driver.close()
    }

    /// Ends the request with its answer, or with an error.
    ///
    /// Of a refusal, as much as has come is the answer also after an error: its status is what matters.
    private func finish(_ error: WaybillError?, isReusable: Bool = false) {
        let (pending, response, failure) = state.withLock { state in
            let isRefusal = state.head.map(Self.isRefusal) ?? false
            let isCut = state.body.isIncomplete
            let failure = isRefusal ? nil : error ?? (isCut ? Self.cutShort : nil)
            if !isReusable || failure != nil { state.isUsable = false }
            let body = state.body.bytes
            let response = state.head.map { HTTPPool.Response(head: $0, body: body, tls: tls) }
            state.body = HTTPBodyCollector(limit: 0)
            return (state.pending.take(), response, failure)
        }
        if let failure {
            pending?.resolve(.failure(failure))
            return driver.close()
        }
        guard let pending, let response else { return }
        if configuration.wireLogger?.bodies == .shownAlthoughTheyMayHoldSecrets {
            configuration.log(
                .inbound,
                name: "body",
                topic: state.withLock { $0.loggedTopic },
                "body of the response",
                Payload(response.body)
            )
        }
        pending.resolve(.success(response))
    }

    private static let cutShort = WaybillError(
        .protocolViolation,
        "the compressed response was cut short"
    )

    /// How long the body of a reply may be.
    private var limit: Int { min(max(configuration.limits.replySize, 0), .max - 1) }
}
