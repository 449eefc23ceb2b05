package import WireCore

/// The times to ping the peer and to give it up (MQTT 5, 3.1.2.10).
///
/// It has two clocks. By the one for sending, a PINGREQ is due when nothing was sent for the interval, as the
/// specification demands, also while another PINGREQ waits for its answer. By the one for the answer, a PINGREQ is due
/// when nothing was received for the interval, so that a client that only sends detects a dead peer, too. The peer is
/// given up when no sign of life follows within the time limit.
package struct MQTTKeepAlive: Sendable {
    /// The action that is due.
    package enum Due: Sendable {
        /// Nothing yet.
        case nothing
        /// A PINGREQ.
        case ping
        /// The end: nothing arrived since the PINGREQ.
        case giveUp
    }

    /// The longest wait for a PINGRESP: 20 seconds.
    package static let longestPingTimeout = Duration.seconds(20)

    /// The interval; zero turns it off.
    package var interval: Duration { didSet { nanoseconds = interval.wireNanoseconds } }
    /// The interval in nanoseconds, cached because it is read after each packet and a conversion divides 128 bits.
    private var nanoseconds: Int64
    private var lastSent: WireInstant
    private var lastReceived: WireInstant
    /// When the peer is given up; nil while no answer is awaited.
    private var answerDeadline: WireInstant?
    /// The number of PINGREQs without an answer.
    private var unanswered = 0
    /// How long both directions were silent before the PINGREQ that waits for its answer; nil without one, and with
    /// several: which one is answered is not known then.
    private var silence: Duration?
    private var isReadingHeld = false

    package init(interval: Duration, at now: WireInstant) {
        self.interval = interval
        nanoseconds = interval.wireNanoseconds
        lastSent = now
        lastReceived = now
    }

    /// The time limit for a PINGRESP: half the interval, at most 20 seconds.
    package var pingTimeout: Duration { min(interval / 2, Self.longestPingTimeout) }

    /// The time of the next action; nil if turned off.
    package var deadline: WireInstant? {
        guard nanoseconds > 0 else { return nil }
        let sending = lastSent.advanced(byNanoseconds: nanoseconds)
        if isReadingHeld { return sending }
        return min(sending, answerDeadline ?? lastReceived.advanced(byNanoseconds: nanoseconds))
    }

    package mutating func noteSent(at now: WireInstant) {
        lastSent = now
    }

    /// Notes received bytes; any byte counts as activity and extends the time limit.
    package mutating func noteReceived(at now: WireInstant) {
        lastReceived = now
        noteProgress(at: now)
    }

    /// Notes that sent bytes have come through: a PINGREQ may wait behind many of them.
    package mutating func noteProgress(at now: WireInstant) {
        if answerDeadline != nil { answerDeadline = now.advanced(by: pingTimeout) }
    }

    /// Notes that this side has stopped or resumed reading; unread data must not count as silence.
    ///
    /// The peer still gets packets from this side within the interval.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        answerDeadline = nil
        silence = nil
        lastReceived = now
    }

    package mutating func notePingResponse() {
        answerDeadline = nil
        unanswered = max(unanswered - 1, 0)
    }

    /// Returns the action that is due now; a ping that is due counts as sent.
    package mutating func due(at now: WireInstant) -> Due {
        guard let deadline, deadline <= now else { return .nothing }
        if let answerDeadline, answerDeadline <= now { return .giveUp }
        silence = unanswered == 0 && !isReadingHeld ? silence(at: now) : nil
        unanswered += 1
        if !isReadingHeld, answerDeadline == nil {
            answerDeadline = now.advanced(by: pingTimeout)
        }
        lastSent = now
        return .ping
    }

    /// Whether a PINGREQ waits for its answer.
    var isPinging: Bool { answerDeadline != nil }

    /// How long both directions have been silent.
    ///
    /// The interval counts from the last PINGREQ, and the silence from its answer. A difference of up to an eighth of
    /// the interval, and up to 5 seconds, is therefore no difference.
    func silence(at now: WireInstant) -> Duration {
        let silence = max(lastSent, lastReceived).duration(to: now)
        let shortest = interval - min(interval / 8, .seconds(5))
        return silence < shortest ? silence : max(silence, interval)
    }

    /// Takes the silence before the PINGREQ that was answered, or that waits for its answer.
    package mutating func takeSilence() -> Duration? { silence.take() }
}
