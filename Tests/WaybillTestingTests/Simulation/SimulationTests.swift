#if os(Linux) && DEBUG
    import Glibc
    import Testing
    import Waybill
    import WireTestSupport

    @testable import WaybillTesting

    /// The seed decides everything.
    @Suite("Simulation: one seed, one run", .enabled(if: Simulation.isAvailable))
    struct SimulationTests {
        @Test("The same seed gives the same run", arguments: 1...10)
        func repeated(seed: UInt64) async throws {
            let first = try await Simulation.run(seed: seed, EchoApp.run)
            let second = try await Simulation.run(seed: seed, EchoApp.run)
            #expect(first.hash == second.hash)
            #expect(first.jobCount == second.jobCount)
            #expect(first.elapsed == second.elapsed)
            #expect(first.faults == second.faults)
            #expect(first.elapsed > .seconds(10))
        }

        @Test("Different seeds give different runs")
        func different() async throws {
            var hashes: Set<UInt64> = []
            for seed in 1...10 as ClosedRange<UInt64> {
                hashes.insert(try await Simulation.run(seed: seed, EchoApp.run).hash)
            }
            #expect(hashes.count == 10)
        }

        @Test("Two processes run a seed alike, hash a set alike and draw the same numbers")
        func processes() async throws {
            var outputs: [String] = []
            for _ in 0..<2 {
                let result = try await #require(
                    processExitsWith: .success,
                    observing: [\.standardOutputContent]
                ) {
                    let report = try await Simulation.run(seed: 7) { world in
                        try await EchoApp.run(world)
                        let words = Set((0..<50).map { "word \($0)" })
                        print("told:", words.joined(separator: " "), UInt64.random(in: 0 ... .max))
                    }
                    print("told:", report.hash, report.elapsed, report.jobCount)
                }
                let text = String(decoding: result.standardOutputContent, as: UTF8.self)
                let lines = text.split(separator: "\n").filter { $0.contains("told:") }
                outputs.append(lines.joined(separator: "\n"))
            }
            #expect(outputs[0] == outputs[1])
            let report = try await Simulation.run(seed: 7) { world in
                try await EchoApp.run(world)
            }
            #expect(outputs[0].contains("told: \(report.hash) \(report.elapsed)"))
        }

        @Test("Runs at the same time do not disturb one another")
        func together() async throws {
            var alone: [UInt64: UInt64] = [:]
            for seed in 1...4 as ClosedRange<UInt64> {
                alone[seed] = try await Simulation.run(seed: seed, EchoApp.run).hash
            }
            // These runs bypass the limit on concurrent runs, which is half of the processors.
            let options = Simulation.Options()
            let together = await withTaskGroup(of: (UInt64, UInt64, [String]).self) { group in
                for number in 0..<8 as Range<UInt64> {
                    let seed = 1 + number % 4
                    let run = SimulationRun(seed: seed, options: options, body: EchoApp.run)
                    group.addTask {
                        let outcome = await run.once()
                        return (seed, outcome.report.hash, outcome.violations)
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
            #expect(together.count == 8)
            for (seed, hash, violations) in together {
                #expect(hash == alone[seed])
                #expect(violations.isEmpty)
            }
        }

        @Test("A run of which the trace is kept is no other one", arguments: 1...5)
        func recorded(seed: UInt64) async throws {
            let run = SimulationRun(
                seed: seed,
                options: Simulation.Options(),
                body: { world in
                    // Recording takes a lock, at which another task could run.
                    let lock = Notes<Int>()
                    for _ in 0..<50 {
                        world.note("\(lock.all)")
                        await Task.yield()
                    }
                    try await EchoApp.run(world)
                }
            )
            let outcome = await run.once()
            let recorded = await run.once(isRecorded: true)
            #expect(outcome.report.hash == recorded.report.hash)
            #expect(outcome.trace.isEmpty)
            #expect(recorded.trace.count > 100)
        }

        @Test("One more draw of the app's leaves the network as it was")
        func independent() async throws {
            func faults(_ draws: Int) async throws -> [SimulatedFaults.Kind: Int] {
                let report = try await Simulation.run(seed: 3) { world in
                    for _ in 0..<draws { _ = Int.random(in: 0...9) }
                    try await EchoApp.run(world)
                }
                return report.faults
            }
            #expect(try await faults(0) == faults(5))
        }

        @Test("`WAYBILL_SEED` leaves one seed of many")
        func oneSeed() async {
            await #expect(processExitsWith: .success) {
                unsetenv("WAYBILL_SEED")
                precondition(Simulation.seeds(3) == [1, 2, 3])
                precondition(Simulation.seeds(0).isEmpty)
                precondition(Simulation.seeds(2, from: 10) == [10, 11])
                setenv("WAYBILL_SEED", "18", 1)
                precondition(Simulation.seeds(200) == [18])
                setenv("WAYBILL_SEED", "none", 1)
                precondition(Simulation.seeds(2) == [1, 2])
            }
        }
    }
#endif
