import WireCore

/// Learns how long a path to the server may be silent: a value without clock.
///
/// Something between client and server, such as a NAT, forgets a connection after some time of silence. A PINGREQ after
/// a silence that is answered proves that the path bears this silence. A loss after such a PINGREQ shows that it does
/// not. The interval doubles from the lowest one to the first loss, and then halves the distance between the longest
/// proven and the shortest broken silence, down to the step. There the search ends, but not for good: after a number of
/// answers the broken silence is tried once more, since its loss may have had another cause.
///
/// | event | state → next state |
/// | --- | --- |
/// | answered after a longer silence than proven | it is proven; a broken silence that is not longer is forgotten |
/// | answered after the proven silence, the search has ended | one answer more; after enough the broken silence is due |
/// | lost after a longer silence than proven | it is broken, if it is the shortest; if it was due again, twice as many answers come first |
/// | lost after a proven silence, for the second time in a row | nothing is proven, and this silence is broken |
/// | ended by the peer in silence, for the second time in a row | this silence is broken |
/// | any other | unchanged |
package struct MQTTKeepAliveProbe: Hashable, Sendable {
    /// What is known of a path, for its next connection.
    package struct Knowledge: Codable, Hashable, Sendable {
        /// The longest silence with an answer, in seconds; zero at first.
        package var proven: Int64 = 0
        /// The shortest silence with a loss, in seconds; nil before the first.
        package var broken: Int64?
        /// The losses in a row that may have another cause.
        package var strikes = 0
        /// The answers since the search has ended.
        package var answers = 0
        /// The number of answers after which the broken silence is tried again.
        package var patience = MQTTKeepAliveProbe.leastPatience

        package init() {}
    }

    /// The number of losses in a row after which a silence counts as broken that is proven, or that no PINGREQ ended.
    private static let maximumStrikes = 2
    /// The answers after which a broken silence is tried again, the first time.
    package static let leastPatience = 64
    /// The same after many vain attempts.
    package static let mostPatience = 4_096

    /// The first interval, which is never gone below, in seconds.
    private let lowest: Int64
    /// The distance at which the search ends, in seconds.
    private let step: Int64
    package private(set) var knowledge: Knowledge

    /// - Parameters:
    ///   - lowest: The first and lowest interval, in seconds; at least 1.
    ///   - step: The distance at which the search ends, in seconds; at least 1.
    ///   - knowledge: What an earlier connection has learned.
    package init(lowest: Int64, step: Int64, knowledge: Knowledge = Knowledge()) {
        // Values from an app's file are bounded by what CONNECT can hold.
        let longest = Int64(UInt16.max)
        self.lowest = min(max(lowest, 1), longest)
        self.step = min(max(step, 1), longest)
        var bounded = Knowledge()
        bounded.proven = min(max(knowledge.proven, 0), longest)
        if let broken = knowledge.broken, broken > bounded.proven {
            bounded.broken = min(broken, longest + 1)
        }
        bounded.strikes = min(max(knowledge.strikes, 0), Self.maximumStrikes - 1)
        bounded.patience = min(max(knowledge.patience, Self.leastPatience), Self.mostPatience)
        bounded.answers = min(max(knowledge.answers, 0), bounded.patience)
        self.knowledge = bounded
    }

    /// The next interval.
    ///
    /// - Parameter announced: The keep alive that the server expects; the longest interval.
    /// - Returns: The interval; `announced` if that is zero, for no pings.
    package func interval(within announced: Duration) -> Duration {
        min(.seconds(next), announced)
    }

    private var next: Int64 {
        let proven = knowledge.proven
        guard let broken = knowledge.broken else { return max(proven * 2, lowest) }
        // A device that slept has a broken silence of hours.
        guard isSettled else { return max(min(proven * 2, proven + (broken - proven) / 2), lowest) }
        return max(knowledge.answers >= knowledge.patience ? broken : proven, lowest)
    }

    /// Whether the search has ended below a broken silence.
    private var isSettled: Bool { knowledge.broken.map { $0 - knowledge.proven <= step } ?? false }

    /// A PINGREQ after a silence was answered.
    package mutating func noteAnswer(after silence: Duration) {
        let seconds = min(silence.components.seconds, Int64(UInt16.max))
        // A shorter silence says nothing.
        if seconds >= lowest { knowledge.strikes = 0 }
        if seconds > knowledge.proven {
            knowledge.proven = seconds
            knowledge.answers = 0
            guard let broken = knowledge.broken, broken <= seconds else { return }
            knowledge.broken = nil
            knowledge.patience = Self.leastPatience
        } else if isSettled, seconds == knowledge.proven {
            knowledge.answers = min(knowledge.answers + 1, knowledge.patience)
        }
    }

    /// The connection was lost after a silence.
    ///
    /// - Parameters:
    ///   - silence: The time in which nothing was sent or received.
    ///   - wasAsked: Whether a PINGREQ ended the silence; else the peer closed the stream.
    package mutating func noteLoss(after silence: Duration, wasAsked: Bool) {
        let seconds = silence.components.seconds
        // A shorter silence is no reason: something else ended the connection.
        guard seconds >= lowest else { return }
        if !wasAsked || seconds <= knowledge.proven {
            // One such loss may have another cause.
            knowledge.strikes += 1
            guard knowledge.strikes >= Self.maximumStrikes else { return }
        }
        if isSettled, knowledge.answers >= knowledge.patience {
            knowledge.patience = min(knowledge.patience * 2, Self.mostPatience)
        }
        knowledge.strikes = 0
        knowledge.answers = 0
        if seconds <= knowledge.proven { knowledge.proven = 0 }
        knowledge.broken = min(knowledge.broken ?? seconds, seconds)
    }
}
