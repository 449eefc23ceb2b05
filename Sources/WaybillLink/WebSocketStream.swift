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
    /// How this side ends the stream.
    private enum Life: Sendable {
        case open
        /// The closing handshake runs; received data is still read.
        case finished
        /// No data is read any more.
        case closed
    }

    /// What the receiver must be told.
    private enum News: Sendable {
        case none
        /// There is new data, or the last read got some.
        case data
        /// The receiver requested a call, with or without data.
        case requested
    }

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
        var news = News.none
        var life = Life.open
        /// The end of the stream, after it has ended.
        var end: LinkError??
        var opening = Opening<WebSocketOpening, Suspension.Continuation>.pending
        var closure: WebSocketEnding?
        var units: WebSocketUnits
        var closingCode = WebSocketCloseCode.normalClosure

        mutating func noteData() {
            if news == .none { news = .data }
        }
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
                resolve(.failure(LinkError(closure) ?? .closed))
            }
        }
        guard !pieces.isEmpty else { return }
        state.withLock { state in
            guard state.life != .closed else { return }
            state.inbox += pieces
            state.noteData()
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
            let cause = state.closure.map { LinkError($0) } ?? error
            state.end = .some(state.life == .open ? cause ?? .endOfStream : nil)
            if state.life != .open { state.inbox = [] }
        }
        resolve(.failure(error ?? .closed))
        pump()
    }

    private func drained() {
        state.withLock { $0.receiver }?.streamIsWritable()
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
                if !state.inbox.isEmpty || (state.news == .requested && state.isReading) {
                    guard state.isReading, state.news != .none else { return nil }
                    state.news = .none
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
                // Another thread that came meanwhile has set `news`.
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
            if filled > 0 { state.noteData() }
            return filled
        }
        return count > 0 ? .bytes(count) : .nothing
    }

    /// What waits in the driver below counts as waiting, too.
    package var sendQueue: SendQueue? {
        guard var queue = driver.stream.sendQueue else { return nil }
        queue.waiting += driver.unsentByteCount
        return queue
    }

    /// False, because the driver below gathers.
    package func scheduleFlush() -> Bool { false }

    package func setReading(_ isReading: Bool) {
        state.withLock { state in
            state.isReading = isReading
            state.hold.isHeld = !isReading && state.life != .closed
            if isReading { state.noteData() }
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
        state.withLock { $0.news = .requested }
        pump()
    }

    /// Sends pings after silence, if the core is configured for it.
    package func keepAlive() {
        driver.withCore { core, _ in core.startPings() }
    }

    package func finishWriting() {
        let code = state.withLock { state in
            if state.life == .open { state.life = .finished }
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
            defer { state.life = .closed }
            return state.life != .finished
        }
        if mustCut { driver.close() } else { tellReading() }
        pump()
    }
}

extension LinkError {
    /// The error of the end of a WebSocket; nil for a normal end.
    package init?(_ ending: WebSocketEnding) {
        switch ending {
        case .closed(.normalClosure, _, _), .closed(.goingAway, _, _),
            .closed(.noStatusReceived, _, _):
            return nil
        case .closed(let code, let reason, _): self = .webSocketClosed(code, reason: reason)
        case .refused(let head, let body): self = .upgradeRefused(head, body: body)
        case .handshakeFailed(let fault): self = .upgradeFailed(fault)
        case .violation(let violation): self = .webSocketViolation(violation)
        case .timedOut(.handshake): self = .timedOut
        case .timedOut: self = .silent
        case .endOfStream: self = .endOfStream
        }
    }
}
