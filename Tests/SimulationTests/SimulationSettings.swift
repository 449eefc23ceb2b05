#if os(Linux)
    import Glibc

    @testable import WaybillSimulations

    /// How much is simulated.
    enum SimulationSettings {
        /// Whether it may take minutes.
        static let isExtended =
            getenv("WAYBILL_EXTENDED").map { String(cString: $0) == "1" } ?? false

        /// How many seeds a service has.
        ///
        /// Seconds for all of them in either mode. A debug build takes some 50 ms for a run, and three times that for one with
        /// event streams; optimised, it is a fifth.
        static func seedCount(_ service: SimulatedService) -> Int {
            if isExtended { return 200 }
            let share = service == .eventStream ? 8 : 15
            #if DEBUG
                return share
            #else
                return share * 10
            #endif
        }

        static func workload(_ service: SimulatedService) -> SimulationWorkload {
            isExtended ? SimulationWorkload(service: service) : .brief(service)
        }
    }
#endif
