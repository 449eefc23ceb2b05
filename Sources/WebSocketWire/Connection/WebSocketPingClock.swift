package import WireCore

/// The times to ping the peer of an open connection, and to give it up (RFC 6455, 5.5.2).
package struct WebSocketPingClock: Sendable {
    /// The action that is due.
    package enum Due: Sendable {
        /// Nothing yet.
        case nothing
        case ping
        /// The end: nothing arrived since the ping.
        case giveUp
    }

    /// The silence after which a ping is sent; zero for never.
    private let interval: Duration
    private let timeout: Duration
    private var lastReceived: WireInstant
    private var pongDeadline: WireInstant?
    private var isReadingHeld = false
    private var sendsPings: Bool

    package init(_ configuration: WebSocketConfiguration, at now: WireInstant) {
        interval = configuration.pingInterval ?? .zero
        timeout = configuration.pingTimeout
        sendsPings = !configuration.pingsOnRequest
        lastReceived = now
    }

    /// The time of the next action; nil if there is none.
    package var deadline: WireInstant? {
        if let pongDeadline { return pongDeadline }
        guard sendsPings, !isReadingHeld, interval > .zero else { return nil }
        return lastReceived.advanced(by: interval)
    }

    /// Returns the action that is due now; a ping that is due counts as sent.
    package mutating func due(at now: WireInstant) -> Due {
        guard let deadline, deadline <= now else { return .nothing }
        guard pongDeadline == nil else { return .giveUp }
        pongDeadline = now.advanced(by: timeout)
        return .ping
    }

    /// Allows pings, if the configuration makes them wait for this call.
    package mutating func start() {
        sendsPings = true
    }

    /// Notes received bytes; any byte is a sign of life.
    package mutating func noteReceived(at now: WireInstant) {
        lastReceived = now
        pongDeadline = nil
    }

    /// Notes that sent bytes have come through: a ping may wait behind many of them.
    package mutating func noteProgress(at now: WireInstant) {
        if pongDeadline != nil { pongDeadline = now.advanced(by: timeout) }
    }

    /// Notes that the driver has stopped or resumed reading; unread data must not count as silence.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        noteReceived(at: now)
    }
}
