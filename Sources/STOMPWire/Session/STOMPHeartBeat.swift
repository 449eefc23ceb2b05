package import WireCore

/// The heart-beat intervals that a side offers and wants (STOMP 1.2, Heart-beating).
package struct STOMPHeartBeat: Hashable, Sendable {
    /// The interval at which this side sends at least; zero for none.
    package var outgoing: Duration
    /// The interval at which this side wants to receive; zero for none.
    package var incoming: Duration

    package init(outgoing: Duration, incoming: Duration) {
        self.outgoing = outgoing
        self.incoming = incoming
    }

    /// No heart-beats, the meaning of a missing header.
    package static let none = STOMPHeartBeat(outgoing: .zero, incoming: .zero)

    /// The longest interval, in milliseconds: 24 days.
    private static let longest: Int64 = 1 << 31 - 1

    /// Reads a header value: two non-negative integers separated by a comma, in milliseconds.
    ///
    /// Intervals above 24 days count as 24 days.
    ///
    /// - Parameter text: The value of a `heart-beat` header.
    package init?(text: String) {
        let parts = text.utf8.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
        guard parts.count == 2, let outgoing = Self.duration(parts[0]),
            let incoming = Self.duration(parts[1])
        else { return nil }
        self.init(outgoing: outgoing, incoming: incoming)
    }

    private static func duration(_ digits: Substring.UTF8View) -> Duration? {
        guard !digits.isEmpty else { return nil }
        var milliseconds: Int64 = 0
        for byte in digits {
            guard byte &- UInt8(ascii: "0") <= 9 else { return nil }
            milliseconds = min(milliseconds * 10 + Int64(byte &- UInt8(ascii: "0")), longest)
        }
        return .milliseconds(milliseconds)
    }

    /// The header value; fractions of a millisecond are rounded up.
    package var text: String {
        "\(Self.milliseconds(outgoing)),\(Self.milliseconds(incoming))"
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        guard duration > .zero else { return 0 }
        let nanoseconds = duration.wireNanoseconds
        let isWhole = nanoseconds.isMultiple(of: 1_000_000)
        return min(nanoseconds / 1_000_000 + (isWhole ? 0 : 1), longest)
    }

    /// The intervals agreed between this side and a peer, from this side's point of view.
    ///
    /// In each direction it is the longer of the sender's and the receiver's interval, or none if either is zero.
    package func agreed(with peer: STOMPHeartBeat) -> STOMPHeartBeat {
        STOMPHeartBeat(
            outgoing: Self.interval(outgoing, peer.incoming),
            incoming: Self.interval(incoming, peer.outgoing)
        )
    }

    private static func interval(_ one: Duration, _ other: Duration) -> Duration {
        guard one > .zero, other > .zero else { return .zero }
        return max(one, other)
    }
}

/// The times to send a heart-beat, and to give up a silent peer.
package struct STOMPHeartBeatClock: Sendable {
    /// The action that is due.
    package enum Due: Sendable {
        /// Nothing yet.
        case nothing
        /// A line end, since nothing else was sent.
        case beat
        /// The end: the peer is silent.
        case giveUp
    }

    /// The agreed intervals.
    package private(set) var agreed: STOMPHeartBeat
    private var lastSent: WireInstant
    private var lastReceived: WireInstant
    private var isReadingHeld = false

    package init(_ agreed: STOMPHeartBeat, at now: WireInstant) {
        self.agreed = agreed
        lastSent = now
        lastReceived = now
    }

    /// Begins the intervals that were agreed now.
    package mutating func begin(_ agreed: STOMPHeartBeat, at now: WireInstant) {
        self.agreed = agreed
        lastSent = now
        lastReceived = now
    }

    /// The time of the next heart-beat: three quarters of the interval after the last send, so that the gap stays below
    /// the interval.
    private var beatDeadline: WireInstant? {
        guard agreed.outgoing > .zero else { return nil }
        return lastSent.advanced(by: agreed.outgoing * 3 / 4)
    }

    /// The longest margin beyond twice the interval: a second.
    package static let longestMargin = Duration.seconds(1)

    /// The time to give up the peer: twice the interval, plus the margin of error that the specification advises.
    ///
    /// Twice the interval alone is too little. A server that checks once per interval whether it has sent something,
    /// such as ActiveMQ, may send that late in normal operation.
    private var peerDeadline: WireInstant? {
        guard agreed.incoming > .zero, !isReadingHeld else { return nil }
        let margin = min(agreed.incoming / 2, Self.longestMargin)
        return lastReceived.advanced(by: agreed.incoming * 2 + margin)
    }

    /// The time of the next action; nil without heart-beats.
    package var deadline: WireInstant? {
        switch (beatDeadline, peerDeadline) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// Notes sent data; any data counts as a heart-beat.
    package mutating func noteSent(at now: WireInstant) {
        lastSent = now
    }

    /// Notes received bytes; any byte counts as a heart-beat, also one of an incomplete frame.
    ///
    /// - Returns: Whether they end a silence of at least half the agreed interval, as a heart-beat does.
    @discardableResult
    package mutating func noteReceived(at now: WireInstant) -> Bool {
        defer { lastReceived = now }
        return agreed.incoming > .zero
            && lastReceived.duration(to: now) >= agreed.incoming / 2
    }

    /// Notes that this side has stopped or resumed reading.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        lastReceived = now
    }

    /// Returns the action that is due now; a heart-beat that is due counts as sent.
    package mutating func due(at now: WireInstant) -> Due {
        if let peerDeadline, peerDeadline <= now { return .giveUp }
        guard let beatDeadline, beatDeadline <= now else { return .nothing }
        lastSent = now
        return .beat
    }
}
