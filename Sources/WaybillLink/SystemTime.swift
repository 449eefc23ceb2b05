import WireCore

#if os(Linux)
    import CWaybillLinux
#endif
#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The system's monotonic clock, exact; some 25 ns to read.
enum SystemTime {
    static var now: WireInstant {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return WireInstant(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }
}
