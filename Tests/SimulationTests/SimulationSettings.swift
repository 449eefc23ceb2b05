#if os(Linux)
    @testable import WaybillSimulations

    /// The extent of the simulations in the tests.
    enum SimulationSettings {
        /// The number of seeds for a service. All of them take some seconds. `WaybillSimulations` and the script
        /// `night` run more.
        ///
        /// A debug build takes some 50 ms for a run, and three times as long for a run with event streams.
        static func seedCount(_ service: SimulatedService) -> Int {
            service == .eventStream ? 8 : 15
        }

        static func workload(_ service: SimulatedService) -> SimulationWorkload {
            .brief(service)
        }
    }
#endif
