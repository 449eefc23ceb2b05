#if os(Linux)
    import Testing
    import WaybillTesting

    @testable import WaybillSimulations

    /// The package's clients through networks that break, a seed each: a failure names its seed and shows the smallest run.
    @Suite("Simulated networks", .enabled(if: Simulation.isAvailable), .timeLimit(.minutes(30)))
    struct SimulatedNetworkTests {
        @Test(arguments: SimulatedService.allCases, Simulation.seeds(SimulationSettings.seedCount))
        func survives(service: SimulatedService, seed: UInt64) async throws {
            try await Simulation.run(seed: seed) { world in
                try await SimulationWorkload(service: service).run(world)
            }
        }
    }
#endif
