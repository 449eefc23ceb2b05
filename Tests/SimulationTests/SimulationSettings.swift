#if os(Linux)
    @testable import WaybillSimulations

    /// The extent of the simulations in the tests.
    enum SimulationSettings {
        /// The number of seeds for a service. `.ci/run` runs 100 of each, and the script `night` far more.
        ///
        /// A debug build takes some 50 ms for a run, and three times as long for a run with event streams.
        static func seedCount(_ service: SimulatedService) -> Int {
            service == .eventStream ? 2 : 4
        }

        static func workload(_ service: SimulatedService) -> SimulationWorkload {
            .brief(service)
        }
    }
#endif
