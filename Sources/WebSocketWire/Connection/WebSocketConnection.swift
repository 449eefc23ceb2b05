import HTTPWire
package import WireCore

/// One side of a WebSocket connection (RFC 6455), from the opening handshake to the closing handshake.
///
/// | state | event → next state |
/// | --- | --- |
/// | connecting (client) | 101 → open; another status → refused; fault, time → finished |
/// | refused (client) | the body's end, 64 KiB of it, time → finished |
/// | waiting (server) | a request → asked; anything else, time → finished |
/// | asked (server) | ``accept(_:subprotocol:headers:)`` → open; ``refuse(_:body:)`` → finished |
/// | open | ``close(_:reason:at:)`` → closing; Close, violation → lingering; silence → finished |
/// | closing | the peer's Close → lingering; time → finished |
/// | lingering | end of stream, time → finished: the server closes the stream (7.1.1) |
///
/// A violation is answered with a Close and its code. Further data is read and discarded until the peer closes the
/// stream, because an immediate close could destroy the Close on its way.
package struct WebSocketConnection: ProtocolCore {
    enum State: Sendable {
        case connecting(WebSocketClientHandshake, deadline: WireInstant)
        case refused(Refusal, deadline: WireInstant)
        case waiting(deadline: WireInstant)
        case asked(HTTPRequestHead)
        case open
        case closing(deadline: WireInstant)
        case lingering(deadline: WireInstant)
        case finished
    }

    /// A response other than 101, with the body received so far.
    struct Refusal: Sendable {
        let head: HTTPResponseHead
        var decoder: HTTPBodyDecoder
        var body: HTTPBodyCollector
    }

    let role: WebSocketRole
    let configuration: WebSocketConfiguration
    var state: State
    var heads: HTTPHeadDecoder
    var reader: WebSocketReader
    var writer: WebSocketWriter
    var events: [WebSocketEvent] = []
    package internal(set) var hasMoreInput = false
    /// A violation after messages that the driver has not handed out yet.
    var pendingViolation: WebSocketViolation?
    /// The payload of a ping that could not be answered yet because too much data waits.
    var owedPong: ByteSlice?

    private var lastReceived: WireInstant
    private var pongDeadline: WireInstant?
    private var isReadingHeld = false
    private var sendsPings: Bool

    init(
        role: WebSocketRole,
        configuration: WebSocketConfiguration,
        state: State,
        at now: WireInstant
    ) {
        self.role = role
        self.configuration = configuration
        self.state = state
        heads = HTTPHeadDecoder(limits: configuration.headLimits)
        reader = WebSocketReader(
            role: role,
            maximumMessageSize: configuration.maximumMessageSize,
            inflater: nil
        )
        writer = WebSocketWriter(
            role: role,
            compressionThreshold: configuration.compressionThreshold,
            randomWords: configuration.randomWords
        )
        lastReceived = now
        sendsPings = !configuration.pingsOnRequest
    }

    // MARK: ProtocolCore

    package var outboundByteCount: Int { writer.outbound.count }

    package var outbound: ByteWriter {
        get { writer.outbound }
        set {
            writer.outbound = newValue
            payOwedPong()
        }
        _modify {
            yield &writer.outbound
            // Taking bytes has made room for a pong.
            payOwedPong()
        }
    }

    package var isFinished: Bool {
        if case .finished = state { true } else { false }
    }

    package var hasEvents: Bool { !events.isEmpty }

    package mutating func takeEvents() -> [WebSocketEvent] {
        defer { events = [] }
        return events
    }

    /// Whether messages can be sent.
    package var isOpen: Bool {
        if case .open = state { true } else { false }
    }

    package var deadline: WireInstant? {
        switch state {
        case .connecting(_, let deadline), .refused(_, let deadline), .waiting(let deadline),
            .closing(let deadline), .lingering(let deadline):
            deadline
        case .open: pongDeadline ?? pingTime
        case .asked, .finished: nil
        }
    }

    private var pingTime: WireInstant? {
        guard sendsPings, !isReadingHeld, let interval = configuration.pingInterval,
            interval > .zero
        else { return nil }
        return lastReceived.advanced(by: interval)
    }

    package mutating func advance(to now: WireInstant) {
        guard let deadline, deadline <= now else { return }
        switch state {
        case .connecting, .waiting: finish(.timedOut(.handshake))
        case .refused(let refusal, _): finish(.refused(refusal.head, body: refusal.body.bytes))
        case .open where pongDeadline != nil: finish(.timedOut(.pong))
        case .open:
            writer.write(.ping, UnsafeRawBufferPointer(start: nil, count: 0))
            pongDeadline = now.advanced(by: configuration.pingTimeout)
        case .closing: finish(.timedOut(.close))
        case .lingering: state = .finished
        case .asked, .finished: break
        }
    }

    /// Allows pings, if the configuration makes them wait for this call.
    package mutating func startPings() {
        sendsPings = true
    }

    /// Notes that the driver has stopped or resumed reading; unread data must not count as silence.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        pongDeadline = nil
        lastReceived = now
    }

    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        lastReceived = now
        pongDeadline = nil
        hasMoreInput = false
        if case .connecting = state { receiveResponse(&buffer, at: now) }
        if case .waiting = state { receiveRequest(&buffer) }
        if case .refused = state { receiveRefusal(&buffer) }
        switch state {
        case .open, .closing: receiveFrames(&buffer, at: now)
        case .lingering, .finished: buffer.removeAll()
        // Data that a client sends before the response waits in the buffer.
        case .connecting, .refused, .waiting, .asked: break
        }
    }

    package mutating func receiveEndOfStream(at now: WireInstant) {
        switch state {
        case .connecting, .waiting: finish(.handshakeFailed(.endOfStream))
        case .refused(let refusal, _): finish(.refused(refusal.head, body: refusal.body.bytes))
        case .asked, .open, .closing:
            finish(pendingViolation.map { .violation($0) } ?? .endOfStream)
        case .lingering: state = .finished
        case .finished: break
        }
    }

    // MARK: The end

    /// Emits the terminal event and closes the stream.
    mutating func finish(_ closure: WebSocketEnding) {
        events.append(.closed(closure))
        state = .finished
    }

    /// Emits the terminal event; the stream ends when the peer closes it, or after a timeout.
    mutating func linger(_ closure: WebSocketEnding, at now: WireInstant) {
        events.append(.closed(closure))
        state = .lingering(deadline: now.advanced(by: configuration.closeTimeout))
    }
}
