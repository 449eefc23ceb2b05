/// What a ``ChaosProxy`` does to a connection.
package enum ChaosFault: String, CaseIterable, Sendable {
    /// Both sides see a reset (RST).
    case reset
    /// Nothing moves for a while in either direction; then it goes on, or both sides see a reset.
    case stall
    /// One direction ends (FIN) and loses what would follow; the other goes on.
    case halfClose
    /// One direction is late, and loses nothing.
    case delay
    /// What follows in one direction goes in pieces of one to three bytes.
    case split
    /// A part of what was read is forwarded, and the connection ends in order (FIN) both ways.
    case truncate
    /// Both sides see a reset, and for a while nobody listens.
    case refuse
}

/// How often a ``ChaosProxy`` does what.
package struct ChaosPlan: Sendable {
    /// What may happen, each as likely as it is named.
    package var kinds = ChaosFault.allCases
    /// After how many bytes of one direction of a connection the next fault comes.
    package var bytesBetweenFaults = 1...8_192
    /// After how long at the latest, bytes or not; nil for not at all.
    package var timeBetweenFaults: ClosedRange<Duration>?
    /// How long a direction is late.
    package var delays: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(30)
    /// How long a connection stands still.
    package var stalls: ClosedRange<Duration> = .milliseconds(5) ... .milliseconds(150)
    /// How long nobody listens.
    package var refusals: ClosedRange<Duration> = .milliseconds(5) ... .milliseconds(100)
    /// How many pieces what is split goes in.
    package var pieces = 5...50
    /// How long a connection that was ended one way may stay open the other way.
    package var farewell = Duration.seconds(1)

    package init() {}

    /// A plan of every kind for so many messages of about so many bytes each, one direction of which is to see so
    /// many faults.
    package init(faults: Int, messages: Int, ofBytes byteCount: Int) {
        // A half more than asked for: what comes while a connection is calm or made again does not count.
        bytesBetweenFaults = 1...max(2, messages * byteCount * 4 / (max(faults, 1) * 3))
    }

    /// A plan of one kind of fault, which comes after so many bytes.
    package init(only kind: ChaosFault, after byteCount: Int) {
        kinds = [kind]
        bytesBetweenFaults = byteCount...byteCount
    }
}

/// What a ``ChaosProxy`` has done.
package struct ChaosCounts: Sendable {
    /// How often each fault came.
    package internal(set) var faults: [ChaosFault: Int] = [:]
    /// How many connections were accepted.
    package internal(set) var connections = 0
    /// How many of them are open.
    package internal(set) var open = 0
    /// How many were reset because nobody listened behind the proxy.
    package internal(set) var unreachable = 0
    /// How many bytes came from clients and were forwarded.
    package internal(set) var bytesUp = 0
    /// How many bytes came from the server and were forwarded.
    package internal(set) var bytesDown = 0
    /// The most bytes that were held at once by one direction of a connection.
    package internal(set) var mostHeld = 0

    /// How many faults came in all.
    package var faultCount: Int { faults.values.reduce(0, +) }

    package init() {}

    /// Adds what another proxy has done; what is open is of the other.
    package static func += (sum: inout Self, other: Self) {
        sum.faults.merge(other.faults, uniquingKeysWith: +)
        sum.connections += other.connections
        sum.open = other.open
        sum.unreachable += other.unreachable
        sum.bytesUp += other.bytesUp
        sum.bytesDown += other.bytesDown
        sum.mostHeld = max(sum.mostHeld, other.mostHeld)
    }

    /// Every kind with its count, in one line.
    package var description: String {
        let parts = ChaosFault.allCases.compactMap { kind in
            faults[kind].map { "\(kind.rawValue) \($0)" }
        }
        return "\(faultCount) faults (\(parts.joined(separator: ", ")))"
    }
}
