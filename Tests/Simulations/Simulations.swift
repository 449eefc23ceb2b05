#if os(Linux)
    import Glibc
    import WaybillTesting
    import WireCore

    /// Runs the package's clients in simulated worlds, seed after seed, and prints the failures.
    ///
    ///     WaybillSimulations SERVICE [--seed N] [--seconds S] [--seeds N] [--stop] [--shrink N]
    ///                        [--idle S] [--brief] [--trace]
    ///
    /// `SERVICE` is the name of a ``SimulatedService``, or `restarts-` and that of an MQTT service, or of `stomp`, for
    /// an app that is killed and started again. With `losses-` instead, an MQTT broker also loses its sessions. With
    /// `poison-` the broker ends connections at a message, at a subscription, and above a quota. `all` takes one seed of
    /// each in turn. The first seed of each that fails is made smaller; `--shrink` limits the number of runs for that. The
    /// exit code is 1 when a seed has failed.
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

        /// A workload by its name on the command line.
        private enum Job {
            case service(SimulatedService)
            case restarts(SimulatedService, losesSessions: Bool)
            case poison(SimulatedService)

            static let all =
                SimulatedService.allCases.map(Job.service)
                + [false, true].flatMap { losesSessions in
                    SimulatedService.allCases.filter(\.isMQTT).map {
                        Job.restarts($0, losesSessions: losesSessions)
                    }
                } + [.restarts(.stomp, losesSessions: false)]
                + PoisonWorkload.services.map(Job.poison)

            var name: String {
                switch self {
                case .service(let service): service.rawValue
                case .restarts(let service, false): "restarts-\(service.rawValue)"
                case .restarts(let service, true): "losses-\(service.rawValue)"
                case .poison(let service): "poison-\(service.rawValue)"
                }
            }

            func run(
                _ world: SimulatedWorld,
                isBrief: Bool,
                idleTime: Duration?
            ) async throws -> [String: Int] {
                switch self {
                case .service(let service):
                    var workload = isBrief ? .brief(service) : SimulationWorkload(service: service)
                    if let idleTime { workload.idleTime = idleTime }
                    return try await workload.run(world)
                case .restarts(let service, let losesSessions):
                    let workload =
                        isBrief
                        ? RestartWorkload.brief(service, losesSessions: losesSessions)
                        : RestartWorkload(service: service, losesSessions: losesSessions)
                    return try await workload.run(world)
                case .poison(let service):
                    return try await PoisonWorkload(service: service).run(world)
                }
            }
        }

        static func main() async {
            let arguments = Array(CommandLine.arguments.dropFirst())
            func value(_ name: String) -> UInt64? {
                arguments.firstIndex(of: name)
                    .flatMap { $0 + 1 < arguments.count ? UInt64(arguments[$0 + 1]) : nil }
            }
            let jobs = Job.all.filter { arguments.first == "all" || arguments.first == $0.name }
            guard !jobs.isEmpty else {
                print("one of: all", Job.all.map(\.name).joined(separator: " "))
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
                for job in jobs {
                    await run(job.name, seed, options, &sum) {
                        try await job.run($0, isBrief: isBrief, idleTime: idleTime)
                    }
                    if sum.failures > 0, arguments.contains("--stop") { break }
                }
                if sum.failures > 0, arguments.contains("--stop") { break }
                seed &+= 1
            }
            report(sum, ContinuousClock.now - begin)
            exit(sum.failures > 0 ? 1 : 0)
        }

        private static func run(
            _ name: String,
            _ seed: UInt64,
            _ options: Simulation.Options,
            _ sum: inout Sum,
            _ workload: @escaping @Sendable (SimulatedWorld) async throws -> [String: Int]
        ) async {
            do {
                let outcomes = Locked<[String: Int]>([:])
                let report = try await Simulation.run(
                    seed: seed,
                    options: options,
                    name: name
                ) { world in
                    let found = try await workload(world)
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
                let brief = CommandLine.arguments.contains("--brief") ? " --brief" : ""
                print(
                    "\(name): \(error)\nby itself: WaybillSimulations \(name) --seed \(seed)\(brief)"
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
#else
    /// Simulations take over the locks and threads of Linux.
    @main
    struct Simulations {
        static func main() {
            print("Simulations run on Linux only.")
        }
    }
#endif
