/// A fault that a ``ChaosProxy`` causes on a connection.
package enum ChaosFault: String, CaseIterable, Sendable {
    /// Both sides see a reset (RST).
    case reset
    /// Both directions stand still for a while. Then they go on, or both sides see a reset.
    case stall
    /// One direction ends (FIN) and loses the bytes that follow. The other direction goes on.
    case halfClose
    /// One direction is late and loses nothing.
    case delay
    /// The bytes that follow in one direction are sent in pieces of one to three bytes.
    case split
    /// A part of the bytes that were read is forwarded. Then the connection ends in order (FIN) in both directions.
    case truncate
    /// Both sides see a reset, and for a while the proxy refuses connections.
    case refuse
}

/// The faults of a ``ChaosProxy`` and how often they come.
package struct ChaosPlan: Sendable {
    /// The kinds of faults. A kind that is listed twice is twice as likely.
    package var kinds = ChaosFault.allCases
    /// The number of bytes in one direction of a connection before the next fault.
    package var bytesBetweenFaults = 1...8_192
    /// The time after which the next fault comes even if no bytes pass; nil for no limit.
    package var timeBetweenFaults: ClosedRange<Duration>?
    /// How long a direction is late.
    package var delays: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(30)
    /// How long a connection stands still.
    package var stalls: ClosedRange<Duration> = .milliseconds(5) ... .milliseconds(150)
    /// How long the proxy refuses connections.
    package var refusals: ClosedRange<Duration> = .milliseconds(5) ... .milliseconds(100)
    /// The number of pieces after a split.
    package var pieces = 5...50
    /// How long a connection that has ended in one direction may stay open in the other.
    package var farewell = Duration.seconds(1)

    package init() {}

    /// Plans faults of every kind, so that one direction sees the given number of them while the messages pass.
    package init(faults: Int, messages: Int, ofBytes byteCount: Int) {
        // Plans 1.5 times as many: bytes during the handshake or while the proxy is calm do not cause faults.
        bytesBetweenFaults = 1...max(2, messages * byteCount * 4 / (max(faults, 1) * 3))
    }

    /// Plans one kind of fault, which comes after the given number of bytes.
    package init(only kind: ChaosFault, after byteCount: Int) {
        kinds = [kind]
        bytesBetweenFaults = byteCount...byteCount
    }
}

/// What a ``ChaosProxy`` has done so far.
package struct ChaosCounts: Sendable {
    /// The number of faults of each kind.
    package internal(set) var faults: [ChaosFault: Int] = [:]
    /// The number of accepted connections.
    package internal(set) var connections = 0
    /// The number of open connections.
    package internal(set) var open = 0
    /// The number of connections that were reset because the server's port refused them.
    package internal(set) var unreachable = 0
    /// The number of bytes that were forwarded from clients.
    package internal(set) var bytesUp = 0
    /// The number of bytes that were forwarded from the server.
    package internal(set) var bytesDown = 0
    /// The largest number of bytes that one direction of a connection held at once.
    package internal(set) var mostHeld = 0

    /// The number of faults of all kinds.
    package var faultCount: Int { faults.values.reduce(0, +) }

    package init() {}

    /// Adds the counts of another proxy. `open` is taken from that one.
    package static func += (sum: inout Self, other: Self) {
        sum.faults.merge(other.faults, uniquingKeysWith: +)
        sum.connections += other.connections
        sum.open = other.open
        sum.unreachable += other.unreachable
        sum.bytesUp += other.bytesUp
        sum.bytesDown += other.bytesDown
        sum.mostHeld = max(sum.mostHeld, other.mostHeld)
    }

    /// Every count in one line.
    package var description: String {
        let parts = ChaosFault.allCases.compactMap { kind in
            faults[kind].map { "\(kind.rawValue) \($0)" }
        }
        return "\(faultCount) faults (\(parts.joined(separator: ", ")))"
    }
}
