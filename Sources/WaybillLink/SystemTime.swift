import WireCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import CWaybillLinux
    import Glibc
#elseif canImport(Musl)
    import CWaybillLinux
    import Musl
#endif

/// The system's exact monotonic clock; about 25 ns to read.
enum SystemTime {
    static var now: WireInstant { read(clock) }

    #if os(Linux)
        /// The same clock, a few nanoseconds to read and at most 4 ms late.
        static var coarseNow: WireInstant { read(CLOCK_MONOTONIC_COARSE) }
    #endif

    private static func read(_ clock: clockid_t) -> WireInstant {
        var time = timespec()
        clock_gettime(clock, &time)
        return WireInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    #if canImport(Darwin)
        /// The clock of Dispatch; like Linux's it stands still while the machine sleeps.
        private static var clock: clockid_t { CLOCK_UPTIME_RAW }
    #else
        private static var clock: clockid_t { CLOCK_MONOTONIC }
    #endif
}
