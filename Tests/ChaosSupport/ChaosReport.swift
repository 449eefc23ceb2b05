/// The result of a run with a ``ChaosProxy``, in one line.
package struct ChaosReport: Sendable {
    package var name: String
    /// The seed that repeats the run.
    package var seed: UInt64
    /// The counts of the proxy.
    package var counts: ChaosCounts
    /// The verdict on the messages.
    package var verdict: NumberedLedger.Verdict
    /// The number of reconnections.
    package var reconnects: Int
    /// The duration of the run.
    package var time: Duration

    package init(
        _ name: String,
        seed: UInt64,
        _ counts: ChaosCounts,
        _ verdict: NumberedLedger.Verdict,
        reconnects: Int,
        time: Duration
    ) {
        self.name = name
        self.seed = seed
        self.counts = counts
        self.verdict = verdict
        self.reconnects = reconnects
        self.time = time
    }

    /// Adds the result of another run.
    package static func += (sum: inout Self, other: Self) {
        sum.counts += other.counts
        sum.verdict += other.verdict
        sum.reconnects += other.reconnects
        sum.time += other.time
    }

    package var description: String {
        let seconds =
            Double(
                time.components.seconds * 10 + time.components.attoseconds / 100_000_000_000_000_000
            ) / 10
        return """
            chaos, \(name): seed \(seed), \(counts.description), \(reconnects) reconnects, \(seconds) s: \
            \(verdict.description)
            """
    }
}
