#if os(Linux)
    import Testing
    import WaybillTesting

    @testable import WaybillSimulations

    /// The package's clients on networks that break. A failure names its seed and shows the smallest run.
    @Suite(
        "Simulated networks",
        .enabled(if: Simulation.isAvailable, "not with a sanitizer, or WAYBILL_SIMULATION=off"),
        .timeLimit(.minutes(30))
    )
    struct SimulatedNetworkTests {
        @Test("Every client survives them", arguments: SimulatedService.allCases)
        func survives(service: SimulatedService) async {
            let workload = SimulationSettings.workload(service)
            for seed in Simulation.seeds(SimulationSettings.seedCount(service)) {
                do {
                    try await Simulation.run(seed: seed) { try await workload.run($0) }
                } catch {
                    Issue.record(error, "\(service)")
                    // Further seeds would report the same failure at length.
                    return
                }
            }
        }

        @Test(
            "An app with a store on disk survives being killed again and again",
            arguments: SimulatedService.allCases.filter(\.isMQTT),
            [false, true]
        )
        func restarts(service: SimulatedService, losesSessions: Bool) async {
            await restart(service, losesSessions: losesSessions)
        }

        @Test("An app with a store on disk, whose protocol has no session, survives it, too")
        func restartsWithoutSession() async { await restart(.stomp, losesSessions: false) }

        private func restart(_ service: SimulatedService, losesSessions: Bool) async {
            let workload = RestartWorkload.brief(service, losesSessions: losesSessions)
            for seed in Simulation.seeds(SimulationSettings.seedCount(service)) {
                do {
                    try await Simulation.run(seed: seed) { try await workload.run($0) }
                } catch {
                    Issue.record(error, "\(service)")
                    return
                }
            }
        }

        @Test(
            "A bad message and a bad subscription are found, and the others live",
            arguments: PoisonWorkload.services
        )
        func poison(service: SimulatedService) async {
            let workload = PoisonWorkload(service: service)
            for seed in Simulation.seeds(SimulationSettings.seedCount(service)) {
                do {
                    try await Simulation.run(seed: seed) { _ = try await workload.run($0) }
                } catch {
                    Issue.record(error, "\(service)")
                    return
                }
            }
        }

        @Test(
            "A run gives the same hash again, whatever else runs",
            arguments: SimulatedService.allCases
        )
        func repeats(service: SimulatedService) async throws {
            let workload = SimulationWorkload.brief(service)
            let hashes = try await withThrowingTaskGroup(of: UInt64.self) { group in
                for _ in 0..<3 {
                    group.addTask {
                        try await Simulation.run(seed: 7) { try await workload.run($0) }.hash
                    }
                }
                return try await group.reduce(into: Set()) { $0.insert($1) }
            }
            #expect(hashes.count == 1)
        }
    }
#endif
