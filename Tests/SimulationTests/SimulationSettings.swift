#if os(Linux)
    @testable import WaybillSimulations

    /// How much is simulated.
    enum SimulationSettings {
        /// How many seeds a service has: seconds for all of them; `WaybillSimulations` and the night's script run more.
        ///
        /// A debug build takes some 50 ms for a run, and three times that for one with event streams.
        static func seedCount(_ service: SimulatedService) -> Int {
            service == .eventStream ? 8 : 15
        }

        static func workload(_ service: SimulatedService) -> SimulationWorkload {
            .brief(service)
        }
    }
#endif
