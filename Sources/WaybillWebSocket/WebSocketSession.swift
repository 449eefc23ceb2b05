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

/// One connection from its stream to its end.
final class WebSocketSession: Sendable {
    /// What was agreed on.
    struct Opening: Sendable {
        var subprotocol: String?
        var headers: Headers
        var isCompressed: Bool
    }

    private struct State: Sendable {
        /// How many bytes of messages wait for the reader, and whether the peer is held back for it.
        var waitingSize = 0
        /// How many of them the reader has taken and may not be done with.
        var lentSize = 0
        var hold = ReadingHold()
        /// Whether a violation follows the messages that wait: the reader may answer those first.
        var awaitsAnswers = false
        /// Whether this side closes, and whether anybody is left to read.
        var isClosing = false
        var isAbandoned = false
        var isRead = false
        var closure: WebSocketClient.Closure?
        var pings: [UInt64: Promise<Void>] = [:]
        var lastPing: UInt64 = 0
    }

    private let state = Locked(State())
    private let waiting = Mailbox<WebSocketClient.Message>()
    private let configuration: WebSocketClient.Configuration
    private let timers: any TimerSource
    let tls: NegotiatedTLS?
    private let driver: Driver<WebSocketConnection>
    private let opening = Promise<Opening>()
    private let ended = Promise<Void>()

    // MARK: Opening

    static func open(
        _ url: URL,
        configuration: WebSocketClient.Configuration,
        environment: LinkEnvironment
    ) async throws -> (WebSocketSession, Opening) {
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
    ) async throws -> (WebSocketSession, Opening) {
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
            session = WebSocketSession(core, configuration, link)
        } catch {
            link.stream.close()
            link.timers.invalidate()
            throw WaybillError(.upgradeInvalid(error))
        }
        return (session, try await session.open())
    }

    private init(
        _ core: WebSocketConnection,
        _ configuration: WebSocketClient.Configuration,
        _ link: OpenedLink
    ) {
        self.configuration = configuration
        timers = link.timers
        tls = link.tls
        driver = Driver(core: core, stream: link.stream, timers: link.timers)
    }

    private func open() async throws -> Opening {
        // The driver lets go of the handler after the end, and of this session with it.
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
                opening.resolve(
                    .success(
                        Opening(
                            subprotocol: opened.subprotocol,
                            headers: Headers(opened.headers),
                            isCompressed: opened.deflate != nil
                        )
                    )
                )
            case .pong(let payload): notePong(payload)
            // Whatever broke the stream is told behind this.
            case .closed(let closure) where closure.isLoss: break
            case .closed(let closure):
                deliver(batch)
                batch = []
                finish(closure, WaybillError.webSocketClosure(closure))
            case .violationAhead:
                deliver(batch)
                batch = []
                awaitAnswers()
            case .requested, .ping: break
            }
        }
        deliver(batch)
    }

    private func deliver(_ batch: [WebSocketClient.Message]) {
        guard !batch.isEmpty else { return }
        let isWanted = state.withLock { state in
            guard !state.isAbandoned else { return false }
            state.waitingSize += Self.size(of: batch)
            updateHold(&state)
            return true
        }
        guard isWanted else { return }
        tellReading()
        waiting.append { $0 += batch }
    }

    /// Stops before the violation that follows until the reader asks for more, and no longer than a Close may take.
    ///
    /// What the reader sends meanwhile leaves before the Close.
    private func awaitAnswers() {
        let awaits = state.withLock { state in
            guard state.waitingSize > 0, !state.isAbandoned else { return false }
            state.awaitsAnswers = true
            state.hold.isHeld = true
            return true
        }
        guard awaits else { return }
        tellReading()
        let deadline = timers.now.advanced(by: configuration.closeTimeout)
        _ = timers.scheduleTimer(at: deadline) { [weak self] in
            self?.state.withLock { state in
                state.awaitsAnswers = false
                self?.updateHold(&state)
            }
            self?.tellReading()
        }
    }

    /// Decides anew whether the peer is held back.
    ///
    /// While the connection closes, more may wait, since a peer that is held back cannot be heard closing. Even then it is
    /// no more than the memory that a connection may take.
    private func updateHold(_ state: inout State) {
        let isMuch = state.waitingSize > configuration.maximumWaitingSize
        let all = state.waitingSize + state.lentSize
        state.hold.isHeld =
            state.awaitsAnswers || (isMuch && !state.isClosing) || all > Self.memoryCapacity
    }

    private static let memoryCapacity = MemoryAccount().capacity

    /// What messages take up: the place of an empty one is memory, too.
    private static func size(of messages: some Collection<WebSocketClient.Message>) -> Int {
        messages.reduce(0) { $0 + $1.byteCount + 64 }
    }

    /// Tells the stream and the core whether the peer is held back, as was decided last.
    private func tellReading() {
        while let isHeld = state.withLock({ $0.hold.beginTelling() }) {
            driver.setReading(!isHeld)
            state.withLock { $0.hold.endTelling() }
        }
    }

    private func finish(_ closure: WebSocketEnding, _ error: WaybillError?) {
        state.withLock { $0.closure = $0.closure ?? WebSocketClient.Closure(closure) }
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
        // Whatever the core has not said before.
        finish(.endOfStream, WaybillError(error ?? .endOfStream))
        timers.invalidate()
        ended.resolve(.success(()))
    }

    // MARK: Sending

    func send(_ kind: WebSocketMessage.Kind, _ payload: some WireBytes) async throws {
        let pause: SendPause
        do throws(WebSocketSendError) {
            pause = try driver.send { (core, _) throws(WebSocketSendError) in
                try core.send(kind, payload)
            }.pause
        } catch {
            throw WaybillError.webSocketSend(error)
        }
        if pause != .none { try await driver.wait(for: pause) }
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
        do throws(WebSocketSendError) {
            try driver.withCore(.immediate) { (core, _) throws(WebSocketSendError) in
                try core.ping(Self.payload(number))
            }
        } catch {
            throw WaybillError.webSocketSend(error)
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
        // The peer may answer the last of several pings only (RFC 6455, 5.5.3).
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

    /// Makes the caller the one reader; false when there is one.
    func beginReading() -> Bool {
        state.withLock { state in
            defer { state.isRead = true }
            return !state.isRead
        }
    }

    func endReading(unused: ArraySlice<WebSocketClient.Message>) {
        state.withLock { state in
            state.isRead = false
            state.waitingSize += Self.size(of: unused)
        }
        waiting.putBack(unused)
        releaseTaken()
    }

    /// Takes all that waits; nil at the end.
    ///
    /// The reader is done with what it has taken before.
    func take() async throws -> [WebSocketClient.Message]? {
        releaseTaken()
        guard let batch = try await waiting.take() else { return nil }
        let size = Self.size(of: batch)
        state.withLock { state in
            state.waitingSize -= size
            state.lentSize += size
            updateHold(&state)
        }
        tellReading()
        return batch
    }

    private func releaseTaken() {
        state.withLock { state in
            state.lentSize = 0
            if state.waitingSize == 0 { state.awaitsAnswers = false }
            updateHold(&state)
        }
        tellReading()
    }

    // MARK: The end

    var closure: WebSocketClient.Closure? { state.withLock { $0.closure } }

    func close(_ code: WebSocketClient.CloseCode, reason: String) async throws {
        do throws(WebSocketSendError) {
            try driver.withCore(.immediate) { (core, now) throws(WebSocketSendError) in
                try core.close(WebSocketCloseCode(rawValue: code.rawValue), reason: reason, at: now)
            }
        } catch {
            throw WaybillError.webSocketSend(error)
        }
        state.withLock { state in
            state.isClosing = true
            state.awaitsAnswers = false
            updateHold(&state)
        }
        tellReading()
        // Not to be cut short: the core's own timers bound it.
        await Task { @concurrent [ended] in try? await ended.value() }.value
        #if os(Linux)
            SharedEventLoop.reap()
        #endif
    }

    /// Closes without waiting, when nobody refers to the connection any longer.
    func abandon() {
        driver.withCore(.immediate) { core, now in try? core.close(.goingAway, at: now) }
        state.withLock { state in
            state.isClosing = true
            state.hold.isHeld = false
            state.isAbandoned = true
        }
        tellReading()
    }
}

extension WebSocketClient.Message {
    fileprivate init(_ message: WebSocketMessage) {
        switch message.kind {
        // Checked by the core: nothing is repaired here.
        case .text:
            self = .text(message.payload.withUnsafeBytes { String(decoding: $0, as: UTF8.self) })
        case .binary: self = .binary(message.payload.bytes)
        }
    }
}
