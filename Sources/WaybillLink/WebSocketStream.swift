package import WebSocketWire
import WireCore

/// A byte stream that runs through a WebSocket: the tunnel for MQTT and STOMP alike.
///
/// Below is one driver with the WebSocket core; above, it looks like any other stream. What is written
/// leaves in messages, and what messages bring is read as bytes. Held back, it holds back the peer.
///
/// Closing after ``finishWriting()`` runs the closing handshake, and the end is told when that is done or
/// its time is over; closing again, or without it, cuts.
package final class WebSocketStream: ByteStream {
    private struct State: Sendable {
        var receiver: (any ByteStreamReceiver)?
        /// What has been received and not read.
        var inbox: ArraySlice<ByteSlice> = []
        /// How much of its first piece has been read.
        var readCount = 0
        /// Whether the reader above has stopped, and whether the peer is held back for it.
        var isReading = true
        var hold = ReadingHold()
        var isPumping = false
        /// Whether there is news for the receiver: more to read, or reading that got somewhere.
        var hasNews = false
        /// Whether the receiver wants to be told even if there is none.
        var isAsked = false
        /// Whether this side ends it, and whether it has been closed: nobody reads any more then.
        var isClosing = false
        var hasBegunToClose = false
        /// How it ended, once it did.
        var end: LinkError??
        var opening: Result<WebSocketOpening, LinkError>?
        var opener: Suspension.Continuation?
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

    /// Cuts what is written from now on into other messages: a server learns only from the request what
    /// the stream will carry.
    package func setUnits(_ units: WebSocketUnits) {
        state.withLock { $0.units = units }
    }

    /// Sets what a Close from this side says, instead of a normal closure.
    package func setClosingCode(_ code: WebSocketCloseCode) {
        state.withLock { $0.closingCode = code }
    }

    // MARK: Opening

    /// Begins the opening handshake; the stream keeps itself until its end.
    ///
    /// - Parameter decide: For a server: called with each request, on the link's thread, to accept or
    ///   refuse it.
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
    /// - Returns: What was agreed on.
    /// - Throws: `LinkError`; `cancelled` when the task was cancelled.
    package func opening() async throws(LinkError) -> WebSocketOpening {
        await Suspension.wait { continuation in
            let mustWait = state.withLock { state in
                guard state.opening == nil, !Task.isCancelled else { return false }
                state.opener = continuation
                return true
            }
            if !mustWait { continuation.resume() }
        } onCancel: {
            state.withLock { $0.opener.take() }?.resume()
        }
        // Read with the lock, so that whoever is resumed sees all that was written before.
        guard let opening = state.withLock({ $0.opening }) else {
            driver.close()
            throw .cancelled
        }
        return try opening.get()
    }

    private func resolve(_ opening: Result<WebSocketOpening, LinkError>) {
        let opener = state.withLock { state in
            if state.opening == nil { state.opening = opening }
            return state.opener.take()
        }
        opener?.resume()
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
            // Whatever broke the stream below is told behind this.
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

    /// What is cut anywhere is binary, and nothing else may come back (MQTT 5, 6.0.0-1).
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

    /// Why it is over; nil for a normal end.
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

    /// What the receiver is told next.
    private enum Step: Sendable {
        case readable(any ByteStreamReceiver)
        case ended(any ByteStreamReceiver, LinkError?)
    }

    /// Tells the receiver what there is, one caller at a time.
    ///
    /// A receiver that leaves something unread is told again only if it has read at all, however much: it
    /// takes so many bytes in a turn, and knows nothing of the pieces they came in.
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
                // Whoever came meanwhile has left its news behind.
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
                // Copied out of memory that is only lent; the frame's mask would copy it anyway.
                try driver.withCore { (core, _) throws(WebSocketSendError) in
                    try core.send(kind, unit)
                }
            } catch {
                // Closing: the end will be told.
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
            // An empty part of an array would keep the whole of it, and the memory of all its pieces.
            if state.inbox.isEmpty { state.inbox = [] }
            if filled > 0 { state.hasNews = true }
            return filled
        }
        return count > 0 ? .bytes(count) : .nothing
    }

    /// The driver below gathers.
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

    /// Sends pings after silence, if the core is configured to.
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
        // What was written leaves before the reset.
        driver.withCore(.immediate) { _, _ in }
        driver.abandon()
        close()
    }

    package func close() {
        let mustCut = state.withLock { state in
            // Nothing more is read, and an end that waited behind it is now this side's own.
            state.inbox = []
            state.readCount = 0
            if case .some = state.end { state.end = .some(nil) }
            // A peer that is held back could not be heard closing.
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
