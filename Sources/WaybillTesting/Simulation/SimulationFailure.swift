/// That a simulated run did not hold what it should: what, the smallest run that shows it, and how to see it again.
public struct SimulationFailure: Error, Sendable, CustomStringConvertible {
    /// The seed.
    public let seed: UInt64
    /// What did not hold.
    public let violations: [String]
    /// What the smallest run was like.
    public let report: Simulation.Report
    /// What was left out of the run to get the smallest one, in words.
    public let reductions: [String]
    /// The smallest run's last lines.
    public let trace: [String]
    /// The command that runs the seed again.
    public let command: String

    /// How many lines of the trace a description has: 60.
    private static let pageLength = 60

    /// All of it, on one page.
    public var description: String {
        let faults = report.faults.sorted { $0.key.rawValue < $1.key.rawValue }
            .map { "\($0.value) \($0.key.rawValue)" }
            .joined(separator: ", ")
        var lines = ["simulation of seed \(seed) failed:"]
        lines += violations.map { "  \($0)" }
        lines.append("smallest run: \(report.elapsed), faults: \(faults.isEmpty ? "none" : faults)")
        lines += reductions.map { "  \($0)" }
        lines.append("again: \(command)")
        if trace.count > Self.pageLength { lines.append("  …") }
        lines += trace.suffix(Self.pageLength).map { "  \($0)" }
        return lines.joined(separator: "\n")
    }
}
