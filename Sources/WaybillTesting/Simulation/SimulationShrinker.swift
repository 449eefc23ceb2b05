import WireCore

/// Finds the smallest run of a seed that still fails: fewer faults, smaller parts.
struct SimulationShrinker {
    private let run: SimulationRun
    private let original: SimulationRun.Outcome
    private var best = SimulationReduction()
    private var bestOutcome: SimulationRun.Outcome
    private var runsLeft: Int
    /// The name of the test.
    private let name: String
    /// The earlier seed of the test that was made smaller.
    private let earlier: UInt64?

    /// The first seed of each test that failed and was made smaller, by the file and the name of the test.
    private static let firstSeeds = Locked<[WireName: UInt64]>([:])

    /// - Parameters:
    ///   - run: The run that has failed.
    ///   - outcome: How.
    ///   - name: The name of its test.
    ///   - file: The file of its test. A test's first seed that fails is made smaller. The others are shown as they are,
    ///     since a mistake that many seeds show would take the time of the search as often.
    init(_ run: SimulationRun, _ outcome: SimulationRun.Outcome, name: String, in file: String) {
        self.run = run
        self.name = name
        original = outcome
        bestOutcome = outcome
        let limit = Self.isAsItIs(outcome) ? 0 : run.options.shrinkingRuns
        let first =
            limit == 0
            ? run.seed
            : Self.firstSeeds.withLock { seeds in
                let test = WireName("\(file) \(name)")
                let first = seeds[test] ?? run.seed
                seeds[test] = first
                return first
            }
        earlier = first == run.seed ? nil : first
        runsLeft = earlier == nil ? limit : 0
    }

    /// Whether a failure is shown as it is: each further run would tell it again, or be cancelled at once.
    private static func isAsItIs(_ outcome: SimulationRun.Outcome) -> Bool {
        outcome.isToldElsewhere || outcome.isCancelled
    }

    /// Looks for it.
    /// - Returns: What failed, and the smallest run in which it does.
    func smallest() async -> SimulationFailure {
        var search = self
        await search.leaveOutKinds()
        await search.shortenFaults()
        // Before single faults, for which there may not be runs enough: a smaller run has fewer of them.
        await search.shrinkSizes()
        await search.shortenFaults()
        await search.skipFaults()
        return await search.failure()
    }

    /// Tries a smaller run, and keeps it if it fails alike.
    private mutating func keep(_ reduction: SimulationReduction) async -> Bool {
        guard runsLeft > 0, reduction != best else { return false }
        runsLeft -= 1
        let outcome = await run.once(reduction)
        guard !outcome.violations.isEmpty, Self.words(outcome) == Self.words(original) else {
            return false
        }
        best = reduction
        bestOutcome = outcome
        return true
    }

    /// The words of the first thing that did not hold: two failures are of one kind when these are the same, whatever
    /// the numbers between them.
    private static func words(_ outcome: SimulationRun.Outcome) -> [Substring] {
        let words = (outcome.violations.first ?? "").split { !$0.isLetter }
        return words.sorted().reduce(into: []) { if $0.last != $1 { $0.append($1) } }
    }

    private mutating func leaveOutKinds() async {
        for kind in SimulatedFaults.Kind.allCases where bestOutcome.report.faults[kind] != nil {
            var reduction = best
            reduction.leftOut.insert(kind)
            _ = await keep(reduction)
        }
    }

    /// Halves the number of faults that happen, from the end.
    private mutating func shortenFaults() async {
        var low = 0
        var high = min(best.faultLimit, bestOutcome.faultCount)
        while low < high, runsLeft > 0 {
            let middle = low + (high - low) / 2
            var reduction = best
            reduction.faultLimit = middle
            if await keep(reduction) { high = middle } else { low = middle + 1 }
        }
    }

    /// Leaves out faults in the midst: in halves, quarters and so on.
    private mutating func skipFaults() async {
        let last = min(best.faultLimit, bestOutcome.faultCount)
        guard last > 0 else { return }
        var length = max(last / 2, 1)
        while runsLeft > 0 {
            for start in stride(from: 1, through: last, by: length) {
                var reduction = best
                reduction.skipped.formUnion(start..<min(start + length, last + 1))
                _ = await keep(reduction)
            }
            if length == 1 { return }
            length = max(length / 2, 1)
        }
    }

    private mutating func shrinkSizes() async {
        for name in original.sizes.keys.sorted() {
            while let size = best.sizes[name] ?? original.sizes[name], size > 1 {
                var reduction = best
                reduction.sizes[name] = size / 2
                if await keep(reduction) { continue }
                reduction.sizes[name] = size - 1
                guard await keep(reduction) else { break }
            }
        }
    }

    /// Runs the smallest once more, with its trace.
    private func failure() async -> SimulationFailure {
        var violations = bestOutcome.violations
        var outcome = bestOutcome
        if !Self.isAsItIs(original) {
            outcome = await run.once(best, isRecorded: true)
            if outcome.report.hash != bestOutcome.report.hash {
                violations.append(
                    "once more, the run was another one: something that is not simulated decides it"
                )
            }
        }
        let filter = name.prefix { $0 != "(" }
        return SimulationFailure(
            seed: run.seed,
            violations: violations,
            report: outcome.report,
            reductions: reductions,
            trace: outcome.trace,
            command: "WAYBILL_SEED=\(run.seed) swift test --filter '\(filter)'"
        )
    }

    private var reductions: [String] {
        var lines: [String] = []
        if let earlier { lines.append("as it is: seed \(earlier) was made smaller before") }
        if !best.leftOut.isEmpty {
            let kinds = best.leftOut.map(\.rawValue).sorted().joined(separator: ", ")
            lines.append("without: \(kinds)")
        }
        if best.faultLimit < .max { lines.append("without faults after number \(best.faultLimit)") }
        if !best.skipped.isEmpty {
            let numbers = best.skipped.sorted().map(String.init).joined(separator: " ")
            lines.append("without the faults of the numbers \(numbers)")
        }
        for (name, size) in best.sizes.sorted(by: { $0.key < $1.key }) {
            lines.append("\(name): \(size) instead of \(original.sizes[name] ?? size)")
        }
        return lines
    }
}
