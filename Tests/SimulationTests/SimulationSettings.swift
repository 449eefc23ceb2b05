#if os(Linux)
    import Glibc

    /// How much is simulated.
    enum SimulationSettings {
        /// Whether thousands of seeds are wanted.
        static let isExtended =
            getenv("WAYBILL_EXTENDED").map { String(cString: $0) == "1" } ?? false

        /// How many seeds each service has.
        static let seedCount = isExtended ? 1_000 : 20
    }
#endif
