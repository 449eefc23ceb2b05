import Waybill
import WaybillLink
import WaybillSession
import WebSocketWire
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A connection, from its stream to its end.
final class WebSocketSession: Sendable {
    private enum Life: Sendable {
        case open
        /// This side closes.
        case closing
        /// The same, and the reader is gone.
        case abandoned
    }

    private struct State: Sendable {
        /// The number of bytes of messages that wait for the reader.
        var waitingSize = 0
        /// The number of bytes that the reader has taken and may still hold.
        var lentSize = 0
        var hold = ReadingHold()
        /// Whether a violation follows the waiting messages; the reader may answer these messages first.
        var awaitsAnswers = false
        /// The timer that ends this wait.
        var answerTimer: UInt64?
        var life = Life.open
        var isRead = false
        var closure: WebSocketClient.Closure?
        var pings: [UInt64: Promise<Void>] = [:]
        var lastPing: UInt64 = 0

        /// Notes that the reader holds no messages any more.
        mutating func releaseTaken() {
            lentSize = 0
            if waitingSize == 0 { awaitsAnswers = false }
        }
    }

    private let state = Locked(State())
    private let waiting = Mailbox<WebSocketClient.Message>()
    private let configuration: WebSocketClient.Configuration
    private let timers: any TimerSource
    let tls: NegotiatedTLS?
    let states = ConnectionStateSource()
    let events: TransportEventSource
    private let host: String
    private let driver: Driver<WebSocketConnection>
    private let opening = Promise<WebSocketOpening>()
    private let ended = Promise<Void>()

    // MARK: Opening

    static func open(
        _ url: URL,
        configuration: WebSocketClient.Configuration,
        environment: LinkEnvironment
    ) async throws -> (WebSocketSession, WebSocketOpening) {
        let address = try ServiceAddress(
            url,
            for: "WebSocket",
            schemes: [.http("ws", port: 80), .http("wss", port: 443, isSecure: true)]
        )
        let failover = try Failover(address, configuration.failover, in: environment) {
            address throws(WaybillError) in
            try environment.proxied(by: configuration.proxy)
                .secured(for: address.scheme, by: configuration.tls)
        }
        return try await failover.first { route in
            try await open(route, configuration)
        }
    }

    private static func open(
        _ route: Failover.Route,
        _ configuration: WebSocketClient.Configuration
    ) async throws -> (WebSocketSession, WebSocketOpening) {
        let request = WebSocketClientHandshake.Request(
            host: route.address.hostField,
            target: route.address.path,
            subprotocols: configuration.subprotocols,
            requiresSubprotocol: configuration.requiresSubprotocol,
            headers: .init(configuration.headers)
        )
        do { try request.check() } catch { throw WaybillError(.upgradeInvalid(error)) }
        let link = try await route.open(within: configuration.connectTimeout)
        var wire = configuration.wire(route.environment.randomWords)
        wire.handshakeTimeout = link.timeLeft
        let session: WebSocketSession
        do throws(WebSocketClientHandshake.RequestError) {
            let core = try WebSocketConnection(
                connecting: request,
                configuration: wire,
                at: link.timers.now
            )
            session = WebSocketSession(
                core,
                configuration,
                link,
                to: route.address.endpoint.description
            )
        } catch {
            link.stream.close()
            throw WaybillError(.upgradeInvalid(error))
        }
        return (session, try await session.open())
    }

    private init(
        _ core: WebSocketConnection,
        _ configuration: WebSocketClient.Configuration,
        _ link: OpenedLink,
        to host: String
    ) {
        self.configuration = configuration
        self.host = host
        events = TransportEventSource(label: configuration.label)
        timers = link.timers
        tls = link.tls
        driver = Driver(core: core, stream: link.stream, timers: link.timers)
    }

    private func open() async throws -> WebSocketOpening {
        // The driver releases the handler after the end, and this session with it.
        driver.start(.init(receive: { self.handle($0) }, end: { self.handleEnd($0) }))
        do {
            return try await opening.value()
        } catch {
            driver.close()
            throw error
        }
    }

    // MARK: Events

    private func handle(_ events: [WebSocketEvent]) {
        var batch: [WebSocketClient.Message] = []
        for event in events {
            switch event {
            case .message(let message): batch.append(WebSocketClient.Message(message))
            case .opened(let opened):
                states.report(.connected)
                opening.resolve(.success(opened))
            case .pong(let payload):
                configuration.log(.inbound, "pong", byteCount: payload.count)
                notePong(payload)
            // The error that broke the stream follows in `handleEnd`.
            case .closed(let closure) where closure.isLoss: break
            case .closed(let closure):
                deliver(batch)
                batch = []
                if case .closed(let code, _, _) = closure, code != .abnormalClosure {
                    configuration.log(
                        .inbound,
                        "Close",
                        text: "Close \(code.rawValue)",
                        byteCount: 0
                    )
                }
                finish(closure, LinkError(closure).map { WaybillError($0) })
            case .violationAhead:
                deliver(batch)
                batch = []
                awaitAnswers()
            case .ping(let payload): configuration.log(.inbound, "ping", byteCount: payload.count)
            case .requested: break
            }
        }
        deliver(batch)
    }

    private func deliver(_ batch: [WebSocketClient.Message]) {
        guard !batch.isEmpty else { return }
        let isWanted = update { state in
            guard state.life != .abandoned else { return false }
            state.waitingSize += Self.size(of: batch)
            return true
        }
        guard isWanted else { return }
        for message in batch {
            configuration.log(.inbound, message.kind, message.payload, byteCount: message.byteCount)
            events.report(.received(topic: nil, byteCount: message.byteCount))
        }
        waiting.append { $0 += batch }
    }

    /// Pauses before a violation until the reader asks for more, but no longer than the close timeout.
    ///
    /// Messages that the reader sends meanwhile are sent before the Close.
    private func awaitAnswers() {
        let awaits = update { state in
            state.awaitsAnswers = state.waitingSize > 0 && state.life != .abandoned
            return state.awaitsAnswers
        }
        guard awaits else { return }
        let deadline = timers.now.advanced(by: configuration.closeTimeout)
        let timer = timers.scheduleTimer(at: deadline) { [weak self] in
            self?.update { $0.awaitsAnswers = false }
        }
        let stale = state.withLock { state in
            defer { state.answerTimer = timer }
            return state.answerTimer
        }
        if let stale { timers.cancelTimer(stale) }
    }

    /// Changes the state, decides again whether reading from the peer stops, and tells the stream and the core.
    ///
    /// While the connection closes, more may wait, because without reading the peer's Close cannot arrive. The account
    /// of the connection still limits the memory.
    @discardableResult
    private func update<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
        let result = state.withLock { state in
            let result = body(&state)
            let isMuch =
                state.life == .open && state.waitingSize > configuration.maximumWaitingSize
            let isFull = state.waitingSize + state.lentSize > Self.memoryCapacity
            state.hold.isHeld =
                state.life != .abandoned && (state.awaitsAnswers || isMuch || isFull)
            return result
        }
        while let isHeld = state.withLock({ $0.hold.beginTelling() }) {
            driver.setReading(!isHeld)
            state.withLock { $0.hold.endTelling() }
        }
        return result
    }

    private static let memoryCapacity = MemoryAccount().capacity

    /// The size of messages, including the memory of an empty message.
    private static func size(of messages: some Collection<WebSocketClient.Message>) -> Int {
        messages.reduce(0) { $0 + $1.byteCount + 64 }
    }

    private func finish(_ closure: WebSocketEnding, _ error: WaybillError?) {
        let isFirst = state.withLock { state in
            defer { state.closure = state.closure ?? WebSocketClient.Closure(closure) }
            return state.closure == nil
        }
        if isFirst {
            states.report(.disconnected(cause: error))
            states.finish()
            events.report(.disconnected(from: host, since: nil, cause: error))
        }
        opening.resolve(
            .failure(error ?? WaybillError(.connectionLost, "closed while it was being opened"))
        )
        waiting.finish(error.map { .failed($0) } ?? .finished)
        let pings = state.withLock { state in
            defer { state.pings = [:] }
            return state.pings.valuesInKeyOrder
        }
        let lost = WaybillError(.connectionLost, "the connection ended before the pong")
        for ping in pings { ping.resolve(.failure(error ?? lost)) }
    }

    private func handleEnd(_ error: LinkError?) {
        // Has no effect if the core has already reported the end.
        finish(.endOfStream, WaybillError(error ?? .endOfStream))
        if let timer = state.withLock({ $0.answerTimer.take() }) { timers.cancelTimer(timer) }
        ended.resolve(.success(()))
    }

    // MARK: Sending

    func send(_ kind: WebSocketMessage.Kind, _ payload: Payload) async throws {
        // Before an answer can come.
        if state.withLock({ $0.life == .open && $0.closure == nil }) {
            configuration.log(
                .outbound,
                kind == .text ? "text" : "binary",
                payload,
                byteCount: payload.count
            )
            events.report(.sent(topic: nil, byteCount: payload.count))
        }
        let pause: SendPause
        do throws(WebSocketSendError) {
            pause = try driver.send { (core, _) throws(WebSocketSendError) in
                try core.send(kind, payload)
            }.pause
        } catch {
            throw WaybillError.webSocketSend(error)
        }
        guard pause != .none else { return }
        do { try await driver.wait(for: pause) } catch let error as LinkError {
            throw WaybillError(error)
        }
    }

    /// Sends a control frame.
    private func withCore(
        _ body: (inout WebSocketConnection, WireInstant) throws(WebSocketSendError) -> Void
    ) throws(WaybillError) {
        do throws(WebSocketSendError) { try driver.withCore(.immediate, body) } catch {
            throw .webSocketSend(error)
        }
    }

    func ping() async throws -> Duration {
        let pong = Promise<Void>()
        let number = state.withLock { state in
            state.lastPing += 1
            state.pings[state.lastPing] = pong
            return state.lastPing
        }
        defer { state.withLock { _ = $0.pings.removeValue(forKey: number) } }
        let begin = timers.now
        try withCore { (core, _) throws(WebSocketSendError) in
            try core.ping(Self.payload(number))
        }
        let deadline = begin.advanced(by: configuration.pingTimeout)
        let timer = timers.scheduleTimer(at: deadline) {
            pong.resolve(.failure(WaybillError(.timedOut, "no pong within the time allowed")))
        }
        defer { timers.cancelTimer(timer) }
        try await pong.value()
        return max(begin.duration(to: timers.now), .zero)
    }

    private func notePong(_ payload: ByteSlice) {
        let bytes = payload.bytes
        guard bytes.count == 8 else { return }
        let number = bytes.reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        // The peer may answer only the last of several pings (RFC 6455, 5.5.3).
        let found = state.withLock { state in
            guard number <= state.lastPing else { return [Promise<Void>]() }
            return state.pings.filter { $0.key <= number }.valuesInKeyOrder
        }
        for pong in found { pong.resolve(.success(())) }
    }

    private static func payload(_ number: UInt64) -> [UInt8] {
        (0..<8).map { UInt8(truncatingIfNeeded: number >> (56 - 8 * $0)) }
    }

    // MARK: Reading

    /// Makes the caller the only reader; returns false if there is one already.
    func beginReading() -> Bool {
        state.withLock { state in
            defer { state.isRead = true }
            return !state.isRead
        }
    }

    func endReading(unused: ArraySlice<WebSocketClient.Message>) {
        waiting.putBack(unused)
        update { state in
            state.isRead = false
            state.waitingSize += Self.size(of: unused)
            state.releaseTaken()
        }
    }

    /// Takes all waiting messages; nil at the end.
    ///
    /// It releases the messages that the reader took before.
    func take() async throws -> [WebSocketClient.Message]? {
        update { $0.releaseTaken() }
        guard let batch = try await waiting.take() else { return nil }
        let size = Self.size(of: batch)
        update { state in
            state.waitingSize -= size
            state.lentSize += size
        }
        return batch
    }

    // MARK: The end

    var closure: WebSocketClient.Closure? { state.withLock { $0.closure } }

    func close(_ code: WebSocketClient.CloseCode, reason: String) async throws {
        try withCore { (core, now) throws(WebSocketSendError) in
            try core.close(WebSocketCloseCode(rawValue: code.rawValue), reason: reason, at: now)
        }
        update { state in
            if state.life == .open { state.life = .closing }
            state.awaitsAnswers = false
        }
        // In a separate task, which the caller's cancellation does not end; the core's timers limit it.
        await Task { @concurrent [ended] in try? await ended.value() }.value
        LinkEnvironment.reclaim()
    }

    /// Closes without waiting, because the last reference to the connection is gone.
    func abandon() {
        driver.withCore(.immediate) { core, now in try? core.close(.goingAway, at: now) }
        update { $0.life = .abandoned }
    }
}

extension WebSocketClient.Message {
    fileprivate init(_ message: WebSocketMessage) {
        switch message.kind {
        // The core has validated the text, so decoding repairs nothing.
        case .text:
            self = .text(message.payload.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        case .binary: self = .binary(message.payload.bytes)
        }
    }
}

extension WebSocketClient.Message {
    /// The kind in a word, for log records.
    fileprivate var kind: String {
        if case .text = self { "text" } else { "binary" }
    }

    fileprivate var payload: Payload {
        switch self {
        case .text(let text): Payload(text)
        case .binary(let bytes): Payload(bytes)
        }
    }
}
