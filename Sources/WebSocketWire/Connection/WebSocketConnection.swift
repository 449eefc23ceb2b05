import HTTPWire
package import WireCore

/// One side of a WebSocket connection (RFC 6455), from the opening handshake to the closing handshake.
///
/// | state | event → next state |
/// | --- | --- |
/// | opening (client) | 101 → open; a refusal with its body, fault, time, end of stream → finished |
/// | opening (server) | ``accept(_:subprotocol:headers:)`` → open; ``refuse(_:body:)``, fault, time, end of stream → finished |
/// | open | ``close(_:reason:at:)`` → closing; the server's Close, violation → lingering; silence → finished |
/// | closing | the server's Close, violation → lingering; time → finished |
/// | lingering | end of stream, time → finished: the server closes the stream (7.1.1) |
/// | finished | none |
///
/// The client's Close and the end of the stream lead to finished.
///
/// A violation is answered with a Close and its code. Further data is read and discarded until the peer closes the
/// stream, because an immediate close could destroy the Close on its way.
package struct WebSocketConnection: ProtocolCore {
    enum State: Sendable {
        // Large and rare, so kept out of line.
        indirect case opening(WebSocketOpeningHandshake)
        case open
        case closing(deadline: WireInstant)
        case lingering(deadline: WireInstant)
        case finished
    }

    let role: WebSocketRole
    let configuration: WebSocketConfiguration
    var state: State
    var reader: WebSocketReader
    var writer: WebSocketWriter
    var events: [WebSocketEvent] = []
    package internal(set) var hasMoreInput = false
    /// A violation after messages that the driver has not handed out yet.
    var pendingViolation: WebSocketViolation?
    private var pings: WebSocketPingClock

    /// - Parameters:
    ///   - role: The side.
    ///   - handshake: The handshake that the client has begun; nil for a server.
    ///   - configuration: The options.
    ///   - now: The time.
    init(
        role: WebSocketRole,
        _ handshake: WebSocketClientHandshake?,
        _ configuration: WebSocketConfiguration,
        at now: WireInstant
    ) {
        self.role = role
        self.configuration = configuration
        state = .opening(WebSocketOpeningHandshake(handshake, configuration, at: now))
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
        pings = WebSocketPingClock(configuration, at: now)
    }

    // MARK: ProtocolCore

    package var outboundByteCount: Int { writer.outbound.count }

    package var outbound: ByteWriter {
        get { writer.outbound }
        set {
            writer.outbound = newValue
            if isOpen { writer.writeOwedPong() }
        }
        _modify {
            yield &writer.outbound
            // Taking bytes has made room for a pong.
            if isOpen { writer.writeOwedPong() }
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
        case .opening(let handshake): handshake.deadline
        case .open: pings.deadline
        case .closing(let deadline), .lingering(let deadline): deadline
        case .finished: nil
        }
    }

    package mutating func advance(to now: WireInstant) {
        guard let deadline, deadline <= now else { return }
        switch state {
        case .opening(let handshake): finish(handshake.ending(.timedOut(.handshake)))
        case .open:
            switch pings.due(at: now) {
            case .nothing: break
            case .ping: writer.write(.ping, UnsafeRawBufferPointer(start: nil, count: 0))
            case .giveUp: finish(.timedOut(.pong))
            }
        case .closing: finish(.timedOut(.close))
        case .lingering: state = .finished
        case .finished: break
        }
    }

    /// Allows pings, if the configuration makes them wait for this call.
    package mutating func startPings() {
        pings.start()
    }

    /// Notes that the driver has stopped or resumed reading; unread data must not count as silence.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        pings.holdReading(isHeld, at: now)
    }

    package mutating func noteGiven(isRest: Bool, at now: WireInstant) {
        if isRest { pings.noteProgress(at: now) }
    }

    package mutating func noteProgress(at now: WireInstant) {
        pings.noteProgress(at: now)
    }

    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        pings.noteReceived(at: now)
        hasMoreInput = false
        if case .opening(let handshake) = state { receiveOpening(handshake, &buffer, at: now) }
        switch state {
        case .opening: break
        case .open, .closing: receiveFrames(&buffer, at: now)
        case .lingering, .finished: buffer.removeAll()
        }
    }

    package mutating func receiveEndOfStream(at now: WireInstant) {
        switch state {
        case .opening(let handshake):
            let isAsked = handshake.request != nil
            finish(isAsked ? .endOfStream : handshake.ending(.handshakeFailed(.endOfStream)))
        case .open, .closing:
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
