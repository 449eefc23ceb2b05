#if os(Linux)
    import Glibc
    import WaybillTesting
    import WireCore

    /// Runs the package's clients in simulated worlds, seed after seed, and prints the failures.
    ///
    ///     WaybillSimulations SERVICE [--seed N] [--seconds S] [--seeds N] [--stop] [--shrink N]
    ///                        [--idle S] [--brief] [--trace]
    ///
    /// `SERVICE` is a case of ``SimulatedService``, or `all` for one seed of each in turn. `--shrink` limits the
    /// number of runs for making a failure smaller. The exit code is 1 when a seed has failed.
    @main
    struct Simulations {
        private struct Sum {
            var runs = 0
            var failures = 0
            var time = Duration.zero
            var faults = 0
            var connections = 0
            var jobs = 0
            var events = 0
            var outcomes: [String: Int] = [:]
        }

        static func main() async {
            let arguments = Array(CommandLine.arguments.dropFirst())
            func value(_ name: String) -> UInt64? {
                arguments.firstIndex(of: name)
                    .flatMap { $0 + 1 < arguments.count ? UInt64(arguments[$0 + 1]) : nil }
            }
            let services =
                arguments.first == "all"
                ? SimulatedService.allCases
                : arguments.first.flatMap(SimulatedService.init(rawValue:)).map { [$0] } ?? []
            guard !services.isEmpty else {
                print(
                    "one of: all",
                    SimulatedService.allCases.map(\.rawValue).joined(separator: " ")
                )
                exit(2)
            }
            let begin = ContinuousClock.now
            let limit = value("--seconds").map { Duration.seconds($0) }
            let seeds = value("--seeds") ?? (limit == nil ? 1 : .max)
            var options = Simulation.Options()
            if let runs = value("--shrink") { options.shrinkingRuns = Int(clamping: runs) }
            let idleTime = value("--idle").map { Duration.seconds($0) }
            let isBrief = arguments.contains("--brief")
            var sum = Sum()
            var seed = value("--seed") ?? 1
            while sum.runs < seeds, limit.map({ ContinuousClock.now - begin < $0 }) ?? true {
                for service in services {
                    var workload = isBrief ? .brief(service) : SimulationWorkload(service: service)
                    if let idleTime { workload.idleTime = idleTime }
                    await run(workload, seed, options, &sum)
                    if sum.failures > 0, arguments.contains("--stop") { break }
                }
                if sum.failures > 0, arguments.contains("--stop") { break }
                seed &+= 1
            }
            report(sum, ContinuousClock.now - begin)
            exit(sum.failures > 0 ? 1 : 0)
        }

        private static func run(
            _ workload: SimulationWorkload,
            _ seed: UInt64,
            _ options: Simulation.Options,
            _ sum: inout Sum
        ) async {
            let service = workload.service.rawValue
            do {
                let outcomes = Locked<[String: Int]>([:])
                let report = try await Simulation.run(seed: seed, options: options) { world in
                    let found = try await workload.run(world)
                    outcomes.withLock { $0 = found }
                }
                sum.outcomes.merge(outcomes.withLock { $0 }, uniquingKeysWith: +)
                sum.time += report.elapsed
                sum.faults += report.faultCount
                sum.connections += report.connectionCount
                sum.jobs += report.jobCount
                sum.events += report.eventCount
            } catch {
                sum.failures += 1
                print(
                    "\(service): \(error)\nby itself: WaybillSimulations \(service) --seed \(seed)"
                )
                if CommandLine.arguments.contains("--trace"),
                    let failure = error as? SimulationFailure
                {
                    print(failure.trace.joined(separator: "\n"))
                }
                fflush(nil)
            }
            sum.runs += 1
        }

        private static func report(_ sum: Sum, _ time: Duration) {
            let seconds = time / .seconds(1)
            let simulated = sum.time / .seconds(1)
            for (outcome, count) in sum.outcomes.sorted(by: { $0.key < $1.key }) {
                print("  \(outcome): \(count)")
            }
            print(
                """
                \(sum.runs) runs, \(sum.failures) failed, in \(Int(seconds * 1_000)) ms
                simulated \(Int(simulated)) s, \(Int(simulated / seconds)) a second
                faults \(sum.faults), \(Int(Double(sum.faults) / seconds)) a second
                connections \(sum.connections), jobs \(sum.jobs), events \(sum.events)
                """
            )
        }
    }
#endif
