/// What a run with a ``ChaosProxy`` has shown, in one line.
package struct ChaosReport: Sendable {
    /// What was run.
    package var name: String
    /// What repeats it.
    package var seed: UInt64
    /// What the proxy did.
    package var counts: ChaosCounts
    /// What became of the messages.
    package var verdict: NumberedLedger.Verdict
    /// How often a connection was made again.
    package var reconnects: Int
    /// How long it took.
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

    /// Adds what another run has shown.
    package static func += (sum: inout Self, other: Self) {
        sum.counts += other.counts
        sum.verdict += other.verdict
        sum.reconnects += other.reconnects
        sum.time += other.time
    }

    /// Everything in one line.
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
