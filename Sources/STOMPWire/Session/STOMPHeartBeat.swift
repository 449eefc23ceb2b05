package import WireCore

/// How often an end sends something and wants to hear something (STOMP 1.2, Heart-beating).
package struct STOMPHeartBeat: Hashable, Sendable {
    /// The longest this end leaves between two signs of life; zero when it gives none.
    package var outgoing: Duration
    /// The longest it wants to wait for one; zero when it wants none.
    package var incoming: Duration

    package init(outgoing: Duration, incoming: Duration) {
        self.outgoing = outgoing
        self.incoming = incoming
    }

    /// None either way; what a missing header means.
    package static let none = STOMPHeartBeat(outgoing: .zero, incoming: .zero)

    /// The longest interval that is told apart, in milliseconds: 24 days.
    private static let longest: Int64 = 1 << 31 - 1

    /// Reads a header value: two non-negative integers with a comma, in milliseconds.
    ///
    /// Intervals above 24 days count as 24 days.
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

    /// The header value; parts of a millisecond count as one.
    package var text: String {
        "\(Self.milliseconds(outgoing)),\(Self.milliseconds(incoming))"
    }

    private static func milliseconds(_ duration: Duration) -> Int64 {
        guard duration > .zero else { return 0 }
        let nanoseconds = duration.wireNanoseconds
        let isWhole = nanoseconds.isMultiple(of: 1_000_000)
        return min(nanoseconds / 1_000_000 + (isWhole ? 0 : 1), longest)
    }

    /// What holds between this end and a peer, as this end sees it.
    ///
    /// Each way it is the longer of what one can do and the other wants, and none if either says
    /// zero.
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

/// When to give a sign of life, and when to give up on a peer that gives none.
package struct STOMPHeartBeatClock: Sendable {
    /// What is due.
    package enum Due: Sendable {
        /// Nothing yet.
        case nothing
        /// A line end, since nothing else was sent.
        case beat
        /// The end: the peer is silent.
        case giveUp
    }

    /// What was agreed.
    package let agreed: STOMPHeartBeat
    private var lastSent: WireInstant
    private var lastReceived: WireInstant
    private var isReadingHeld = false

    package init(_ agreed: STOMPHeartBeat, at now: WireInstant) {
        self.agreed = agreed
        lastSent = now
        lastReceived = now
    }

    /// When to beat: at three quarters of the interval, so that the gap stays below it.
    private var beatDeadline: WireInstant? {
        guard agreed.outgoing > .zero else { return nil }
        return lastSent.advanced(by: agreed.outgoing * 3 / 4)
    }

    /// The longest margin beyond twice the interval: a second.
    package static let longestMargin = Duration.seconds(1)

    /// When to give up: at twice the interval, with the margin of error that the specification advises.
    ///
    /// Twice alone is too little: a server that looks once in each interval whether it has sent something, as
    /// ActiveMQ does, beats as late as that when all is well.
    private var peerDeadline: WireInstant? {
        guard agreed.incoming > .zero, !isReadingHeld else { return nil }
        let margin = min(agreed.incoming / 2, Self.longestMargin)
        return lastReceived.advanced(by: agreed.incoming * 2 + margin)
    }

    /// When something is due; nil without heart-beats.
    package var deadline: WireInstant? {
        switch (beatDeadline, peerDeadline) {
        case (let one?, let other?): min(one, other)
        case (let one, let other): one ?? other
        }
    }

    /// Anything that is sent is a sign of life.
    package mutating func noteSent(at now: WireInstant) {
        lastSent = now
    }

    /// Any byte is a sign of life, also one of a frame that is not complete.
    package mutating func noteReceived(at now: WireInstant) {
        lastReceived = now
    }

    /// Stops to listen for signs of life, or begins again.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        isReadingHeld = isHeld
        lastReceived = now
    }

    /// What is due now; a beat that is due counts as sent.
    package mutating func due(at now: WireInstant) -> Due {
        if let peerDeadline, peerDeadline <= now { return .giveUp }
        guard let beatDeadline, beatDeadline <= now else { return .nothing }
        lastSent = now
        return .beat
    }
}
