package import WireCore

/// When to ask the peer for a sign of life, and when to give it up (MQTT 5, 3.1.2.10).
///
/// A PINGREQ is due when nothing was sent for the interval, as the specification demands, and also when
/// nothing was received for it: so a dead peer is found by those who only send, too.
package struct MQTTKeepAlive: Sendable {
    /// What is due.
    package enum Due: Sendable {
        /// Nothing yet.
        case nothing
        /// A PINGREQ.
        case ping
        /// The end: no sign of life since the PINGREQ.
        case giveUp
    }

    /// The longest wait for a PINGRESP: 20 seconds.
    package static let longestPingTimeout = Duration.seconds(20)

    /// The interval; zero is off.
    package var interval: Duration { didSet { nanoseconds = interval.wireNanoseconds } }
    /// The interval once more: it is asked for after each packet, and a duration divides 128 bits.
    private var nanoseconds: Int64
    private var lastSent: WireInstant
    private var lastReceived: WireInstant
    private var pingDeadline: WireInstant?
    private var isReadingHeld = false

    package init(interval: Duration, at now: WireInstant) {
        self.interval = interval
        nanoseconds = interval.wireNanoseconds
        lastSent = now
        lastReceived = now
    }

    /// How long a PINGRESP may take: half the interval, 20 seconds at the most.
    package var pingTimeout: Duration { min(interval / 2, Self.longestPingTimeout) }

    /// When something is due; nil while it is off.
    package var deadline: WireInstant? {
        guard nanoseconds > 0 else { return nil }
        if isReadingHeld { return lastSent.advanced(byNanoseconds: nanoseconds) }
        return pingDeadline ?? min(lastSent, lastReceived).advanced(byNanoseconds: nanoseconds)
    }

    package mutating func noteSent(at now: WireInstant) {
        lastSent = now
    }

    /// Any bytes are a sign of life, so they put off giving up.
    package mutating func noteReceived(at now: WireInstant) {
        lastReceived = now
        if pingDeadline != nil { pingDeadline = now.advanced(by: pingTimeout) }
    }

    /// Notes that this side has stopped reading, or goes on: what is not read is no sign of death.
    ///
    /// The peer still hears from this side as often as was agreed.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        pingDeadline = nil
        lastReceived = now
    }

    package mutating func notePingResponse() {
        pingDeadline = nil
    }

    /// What is due now; a ping that is due counts as sent.
    package mutating func due(at now: WireInstant) -> Due {
        guard let deadline, deadline <= now else { return .nothing }
        guard pingDeadline == nil else { return .giveUp }
        lastSent = now
        if !isReadingHeld { pingDeadline = now.advanced(by: pingTimeout) }
        return .ping
    }
}
