#if os(Linux)
    import Glibc

    @testable import WaybillSimulations

    /// How much is simulated.
    enum SimulationSettings {
        /// Whether it may take minutes.
        static let isExtended =
            getenv("WAYBILL_EXTENDED").map { String(cString: $0) == "1" } ?? false

        /// How many seeds each service has.
        static let seedCount = isExtended ? 200 : 50

        static func workload(_ service: SimulatedService) -> SimulationWorkload {
            isExtended ? SimulationWorkload(service: service) : .brief(service)
        }
    }
#endif
