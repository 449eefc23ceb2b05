#if os(Linux) && DEBUG
    import Testing
    import Waybill
    import WaybillMQTT
    import WireTestSupport

    @testable import WaybillTesting

    /// The faults in a world, and the search for the smallest run in which a test fails.
    @Suite("Simulation: faults and smallest runs", .enabled(if: Simulation.isAvailable))
    struct SimulationFaultTests {
        @Test("Each kind of fault happens, over some seeds")
        func kinds() async throws {
            var counts: [SimulatedFaults.Kind: Int] = [:]
            for seed in 1...20 as ClosedRange<UInt64> {
                let report = try await Simulation.run(seed: seed) { world in
                    var faults = SimulatedFaults.rough(until: .seconds(60))
                    faults.losses = .seconds(60)
                    // So long that a connection attempt times out while its bytes are in transit.
                    faults.stalls = 20
                    faults.longestStall = .seconds(40)
                    faults.lateArrivals = 90
                    try await EchoApp.run(world, faults: faults)
                }
                counts.merge(report.faults, uniquingKeysWith: +)
            }
            for kind in SimulatedFaults.Kind.allCases {
                #expect(counts[kind, default: 0] > 0, "\(kind.rawValue)")
            }
        }

        @Test("Without faults nothing goes wrong: one connection")
        func none() async throws {
            for seed in 1...5 as ClosedRange<UInt64> {
                let report = try await Simulation.run(seed: seed) { world in
                    try await EchoApp.run(world, faults: .none)
                }
                #expect(report.faultCount == 0)
                #expect(report.connectionCount == 1)
            }
        }

        @Test("Nothing goes wrong after the faults' end, nor after the network was healed")
        func end() async throws {
            for seed in 1...10 as ClosedRange<UInt64> {
                try await Simulation.run(seed: seed) { world in
                    let end = seed % 2 == 0 ? Duration.seconds(20) : .seconds(1_000)
                    let counts = Notes<Int>()
                    Task {
                        try await Task.sleep(for: .seconds(20))
                        if seed % 2 != 0 { world.heal() }
                        counts.add(world.network.faultCount)
                    }
                    try await EchoApp.run(world, faults: .rough(until: end))
                    try await world.wait(for: "the end", within: .seconds(1_000)) {
                        world.elapsed > .seconds(21)
                    }
                    world.expect(counts.all == [world.network.faultCount], "no further fault")
                }
            }
        }

        @Test("Some runs have more of a kind, some none of it")
        func varied() async throws {
            var refusals: Set<Int> = []
            for seed in 1...40 as ClosedRange<UInt64> {
                var dice = SimulationDice(seed: seed, use: 3)
                let faults = SimulatedFaults.rough(until: .seconds(1)).varied(by: &dice)
                refusals.insert(Int(faults.refusals * 10))
            }
            #expect(refusals == [0, 15, 50, 150])
        }

        /// An app that fails when its connection is lost the second time, if it has at least seven items.
        @Sendable private static func broken(_ world: SimulatedWorld) async throws {
            let items = world.size(of: "items", 100)
            let broker = world.broker()
            world.faults = .rough(until: .seconds(300))
            let transport = try MQTTTransport(url: broker.url())
            let provider = Provider<NumberEntry>(transport: transport)
            let task = Task {
                var losses = 0
                for await state in transport.states {
                    if case .waiting = state { losses += 1 }
                }
                return losses
            }
            while world.elapsed < .seconds(300) {
                _ = try? await provider.request(.send(1, topic: "n"))
                try await Task.sleep(for: .seconds(1))
            }
            await transport.shutdown()
            task.cancel()
            let losses = await task.value
            if losses >= 2, items >= 7 { world.fail("lost connections, with \(items) items") }
        }

        @Test(
            "A failure is made small: the few faults and the sizes that it takes",
            arguments: [UInt64(1)]
        )
        func shrinks(seed: UInt64) async throws {
            let whole = await SimulationRun(
                seed: seed,
                options: Simulation.Options(),
                body: Self.broken
            ).once()
            try #require(whole.report.faultCount >= 10)
            let bodies = Notes<Int>()
            var options = Simulation.Options()
            options.shrinkingRuns = 150
            let runs = options.shrinkingRuns
            let error = await #expect(throws: SimulationFailure.self) {
                // A test's first seed is made smaller.
                let name = "shrinks \(seed)"
                try await Simulation.run(seed: seed, options: options, name: name) { world in
                    bodies.add(1)
                    try await Self.broken(world)
                }
            }
            let failure = try #require(error)
            #expect(failure.violations == ["lost connections, with 7 items"])
            #expect(failure.report.faultCount <= 3, "\(failure)")
            #expect(failure.reductions.contains("items: 7 instead of 100"))
            // The first run, the runs of the search, and the run that is reported.
            #expect(bodies.all.count <= runs + 2)
        }

        @Test(
            "Of several seeds that fail, the first is made smaller and the others are as they are"
        )
        func firstSeed() async throws {
            let bodies = Notes<UInt64>()
            func failure(_ seed: UInt64) async throws -> SimulationFailure {
                let error = await #expect(throws: SimulationFailure.self) {
                    try await Simulation.run(seed: seed) { world in
                        bodies.add(seed)
                        if world.size(of: "items", 100) >= 7 { world.fail("too many") }
                    }
                }
                return try #require(error)
            }
            #expect(try await failure(1).reductions == ["items: 7 instead of 100"])
            let later = try await failure(2)
            #expect(later.reductions == ["as it is: seed 1 was made smaller before"])
            #expect(later.description.contains("WAYBILL_SEED=2 "))
            // The run itself, and once more for its trace.
            #expect(bodies.all.count { $0 == 2 } == 2)
            // Asked for again, the first one is made smaller again.
            #expect(try await failure(1).reductions == ["items: 7 instead of 100"])
        }

        @Test("A failure fits on a page, and says how to see it again")
        func description() async throws {
            var options = Simulation.Options()
            options.shrinkingRuns = 10
            let error = await #expect(throws: SimulationFailure.self) {
                try await Simulation.run(seed: 42, options: options) { world in
                    for number in 0..<1_000 { world.note("note \(number)") }
                    world.fail("it is as it is")
                }
            }
            let failure = try #require(error)
            let lines = failure.description.split(separator: "\n").map(String.init)
            #expect(lines.count <= 72)
            #expect(lines.first == "simulation of seed 42 failed:")
            #expect(lines.contains("  it is as it is"))
            #expect(lines.contains("again: WAYBILL_SEED=42 swift test --filter 'description'"))
            #expect(lines.contains { $0.hasSuffix("note 999") })
            #expect(!lines.contains { $0.hasSuffix("note 1") })
            #expect(lines.last?.contains("VIOLATION: it is as it is") == true)
            #expect(failure.trace.contains { $0.hasSuffix("note 1") })
        }

        @Test("A run that was not asked to be made smaller is shown as it is")
        func asItIs() async throws {
            let failure = try await failure(seed: 1, Self.broken)
            #expect(failure.reductions.isEmpty)
            #expect(failure.violations == ["lost connections, with 100 items"])
        }

        @Test("What is not simulated and decides a run is told of")
        func undecided() async throws {
            let runs = Notes<Int>()
            var options = Simulation.Options()
            options.shrinkingRuns = 0
            let error = await #expect(throws: SimulationFailure.self) {
                try await Simulation.run(seed: 1, options: options) { world in
                    // A count that outlives its world.
                    runs.add(1)
                    for _ in 0..<runs.all.count { await Task.yield() }
                    world.fail("always")
                }
            }
            #expect(
                error?.violations == [
                    "always",
                    "once more, the run was another one: something that is not simulated decides it",
                ]
            )
        }
    }
#endif
