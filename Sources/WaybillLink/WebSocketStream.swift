package import WebSocketWire
import WireCore

/// A byte stream through a WebSocket, the tunnel of MQTT and STOMP.
///
/// Below it is one driver with the WebSocket core; above, it is a byte stream like any other. Written bytes are sent in
/// messages, and received messages are read as bytes. Stopping to read stops reading from the peer.
///
/// Closing after ``finishWriting()`` runs the closing handshake, and the end is reported after it or at its timeout.
/// Closing a second time, or without ``finishWriting()``, ends the connection at once.
package final class WebSocketStream: ByteStream {
    private struct State: Sendable {
        var receiver: (any ByteStreamReceiver)?
        /// Received data that was not read yet.
        var inbox: ArraySlice<ByteSlice> = []
        /// The number of bytes of the first piece that were read.
        var readCount = 0
        /// Whether the reader above reads.
        var isReading = true
        var hold = ReadingHold()
        var isPumping = false
        /// Whether the receiver must be told: there is new data, or the last read got some.
        var hasNews = false
        /// Whether the receiver requested a call without new data.
        var isAsked = false
        /// Whether this side ends the stream; no data is read any more then.
        var isClosing = false
        var hasBegunToClose = false
        /// The end of the stream, after it has ended.
        var end: LinkError??
        var opening = Opening<WebSocketOpening, Suspension.Continuation>.pending
        var closure: WebSocketEnding?
        var units: WebSocketUnits
        var closingCode = WebSocketCloseCode.normalClosure
    }

    private let state: Locked<State>
    private let driver: Driver<WebSocketConnection>
    package let tls: TLSAgreement?

    package init(
        core: WebSocketConnection,
        units: WebSocketUnits,
        stream: any ByteStream,
        timers: any TimerSource
    ) {
        state = Locked(State(units: units))
        tls = stream.tls
        driver = Driver(core: core, stream: stream, timers: timers)
    }

    /// Changes the division into messages from now on: a server learns only from the request which protocol the stream
    /// will carry.
    package func setUnits(_ units: WebSocketUnits) {
        state.withLock { $0.units = units }
    }

    /// Sets the code of this side's Close, in place of a normal closure.
    package func setClosingCode(_ code: WebSocketCloseCode) {
        state.withLock { $0.closingCode = code }
    }

    // MARK: Opening

    /// Starts the opening handshake; the stream references itself until its end.
    ///
    /// - Parameter decide: For a server: called with each request on the link's thread, to accept or refuse it.
    package func open(
        _ decide: @escaping @Sendable (inout WebSocketConnection, WebSocketEvent) -> Void = {
            _,
            _ in
        }
    ) {
        driver.start(
            .init(
                receive: { self.handle($0, decide) },
                end: { self.ended($0) },
                drained: { self.drained() }
            )
        )
    }

    /// Waits until the connection is open.
    ///
    /// - Returns: The result of the handshake.
    /// - Throws: `LinkError`; `cancelled` if the task was cancelled.
    package func opening() async throws(LinkError) -> WebSocketOpening {
        try await state.opened(\.opening) { driver.close() }
    }

    private func resolve(_ opening: Result<WebSocketOpening, LinkError>) {
        state.withLock { $0.opening.decide(opening).waiter }?.resume()
    }

    // MARK: Events

    private func handle(
        _ events: [WebSocketEvent],
        _ decide: (inout WebSocketConnection, WebSocketEvent) -> Void
    ) {
        var pieces: [ByteSlice] = []
        loop: for event in events {
            switch event {
            case .requested: driver.withCore(.immediate) { core, _ in decide(&core, event) }
            case .opened(let opening): resolve(.success(opening))
            case .message(let message):
                guard mayTake(message) else {
                    driver.withCore(.immediate) { core, now in core.fail(.unexpectedText, at: now) }
                    break loop
                }
                if message.payload.count > 0 { pieces.append(message.payload) }
            case .ping, .pong, .violationAhead: break
            // The end of the stream below, with its error, is reported after this.
            case .closed(let closure) where closure.isLoss: break
            case .closed(let closure):
                state.withLock { $0.closure = closure }
                resolve(.failure(Self.error(closure) ?? .closed))
            }
        }
        guard !pieces.isEmpty else { return }
        state.withLock { state in
            guard !state.hasBegunToClose else { return }
            state.inbox += pieces
            state.hasNews = true
        }
        pump()
    }

    /// Whether a message is allowed: MQTT uses only binary messages (MQTT 5, 6.0.0-1).
    private func mayTake(_ message: WebSocketMessage) -> Bool {
        guard case .anywhere = state.withLock({ $0.units }) else { return true }
        return message.kind == .binary
    }

    private func ended(_ error: LinkError?) {
        state.withLock { state in
            let cause = state.closure.map { Self.error($0) } ?? error
            state.end = .some(state.isClosing ? nil : cause ?? .endOfStream)
            if state.isClosing { state.inbox = [] }
        }
        resolve(.failure(error ?? .closed))
        pump()
    }

    private func drained() {
        state.withLock { $0.receiver }?.streamIsWritable()
    }

    /// The error of an end; nil for a normal end.
    private static func error(_ closure: WebSocketEnding) -> LinkError? {
        switch closure {
        case .closed(.normalClosure, _, _), .closed(.goingAway, _, _),
            .closed(.noStatusReceived, _, _):
            nil
        case .closed(let code, let reason, _): .webSocketClosed(code, reason: reason)
        case .refused(let head, let body): .upgradeRefused(head, body: body)
        case .handshakeFailed(let fault): .upgradeFailed(fault)
        case .violation(let violation): .webSocketViolation(violation)
        case .timedOut(.handshake): .timedOut
        case .timedOut: .silent
        case .endOfStream: .endOfStream
        }
    }

    /// The next call to the receiver.
    private enum Step: Sendable {
        case readable(any ByteStreamReceiver)
        case ended(any ByteStreamReceiver, LinkError?)
    }

    /// Tells the receiver of data and the end; one thread at a time.
    ///
    /// A receiver that leaves data unread is told again only if it has read anything: it reads a limited number of
    /// bytes per turn, and does not know the pieces in which they arrived.
    private func pump() {
        while true {
            let step: Step? = state.withLock { state in
                guard !state.isPumping, let receiver = state.receiver else { return nil }
                if !state.inbox.isEmpty || (state.isAsked && state.isReading) {
                    guard state.isReading, state.hasNews else { return nil }
                    state.hasNews = false
                    state.isAsked = false
                    state.isPumping = true
                    return .readable(receiver)
                }
                guard case .some(let end) = state.end else { return nil }
                state.receiver = nil
                return .ended(receiver, end)
            }
            switch step {
            case .readable(let receiver):
                receiver.streamIsReadable()
                // Another thread that came meanwhile has set `hasNews`.
                state.withLock { $0.isPumping = false }
            case .ended(let receiver, let error): return receiver.streamDidEnd(error)
            case nil: return
            }
        }
    }

    // MARK: ByteStream

    package func start(_ receiver: any ByteStreamReceiver) {
        state.withLock { $0.receiver = receiver }
        pump()
    }

    package func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        let (end, units) = state.withLock { ($0.end, $0.units) }
        if let end { throw end ?? .closed }
        var taken = 0
        while taken < bytes.count, !driver.requestDrainNotice() {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[taken...])
            let unit = UnsafeRawBufferPointer(rebasing: rest.prefix(units.length(of: rest)))
            let kind = units.kind(of: unit)
            do throws(WebSocketSendError) {
                // Copied from memory that is only lent; masking the frame would copy it anyway.
                try driver.withCore { (core, _) throws(WebSocketSendError) in
                    try core.send(kind, unit)
                }
            } catch {
                // Closing: the end will be reported.
                return bytes.count
            }
            taken += unit.count
        }
        return taken
    }

    package func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        let count = state.withLock { state in
            var filled = 0
            while filled < space.count, let first = state.inbox.first {
                let count = min(first.count - state.readCount, space.count - filled)
                first.withUnsafeBytes { bytes in
                    let part = bytes[state.readCount..<state.readCount + count]
                    UnsafeMutableRawBufferPointer(rebasing: space[filled...]).copyBytes(from: part)
                }
                filled += count
                state.readCount += count
                guard state.readCount == first.count else { break }
                state.readCount = 0
                state.inbox.removeFirst()
            }
            // An empty slice would keep the whole array, and the memory of all its pieces.
            if state.inbox.isEmpty { state.inbox = [] }
            if filled > 0 { state.hasNews = true }
            return filled
        }
        return count > 0 ? .bytes(count) : .nothing
    }

    /// False, because the driver below gathers.
    package func scheduleFlush() -> Bool { false }

    package func setReading(_ isReading: Bool) {
        state.withLock { state in
            state.isReading = isReading
            state.hold.isHeld = !isReading && !state.hasBegunToClose
            if isReading { state.hasNews = true }
        }
        tellReading()
        if isReading { pump() }
    }

    private func tellReading() {
        while let isHeld = state.withLock({ $0.hold.beginTelling() }) {
            driver.setReading(!isHeld)
            state.withLock { $0.hold.endTelling() }
        }
    }

    package func readAgain() {
        state.withLock { state in
            state.hasNews = true
            state.isAsked = true
        }
        pump()
    }

    /// Sends pings after silence, if the core is configured for it.
    package func keepAlive() {
        driver.withCore { core, _ in core.startPings() }
    }

    package func finishWriting() {
        let code = state.withLock { state in
            state.isClosing = true
            return state.closingCode
        }
        driver.withCore(.immediate) { core, now in try? core.close(code, at: now) }
    }

    package func abandon() {
        // Written data is sent before the reset.
        driver.withCore(.immediate) { _, _ in }
        driver.abandon()
        close()
    }

    package func close() {
        let mustCut = state.withLock { state in
            // No more data is read, so an end that waited behind it now counts as caused by this side.
            state.inbox = []
            state.readCount = 0
            if case .some = state.end { state.end = .some(nil) }
            // While reading is stopped, the peer's Close could not arrive.
            state.hold.isHeld = false
            defer {
                state.isClosing = true
                state.hasBegunToClose = true
            }
            return !state.isClosing || state.hasBegunToClose
        }
        if mustCut { driver.close() } else { tellReading() }
        pump()
    }
}
