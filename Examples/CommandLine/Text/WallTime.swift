#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// A time by the clock of this computer.
package struct WallTime: Sendable, Equatable {
    package let seconds: Int
    package let nanoseconds: Int

    package init(seconds: Int, nanoseconds: Int) {
        self.seconds = seconds
        self.nanoseconds = nanoseconds
    }

    private func parts(_ isUniversal: Bool) -> tm {
        var (time, parts) = (time_t(seconds), tm())
        if isUniversal { gmtime_r(&time, &parts) } else { localtime_r(&time, &parts) }
        return parts
    }

    /// `2026-11-28T09:30:00.123456Z`.
    package var iso8601: String {
        let parts = parts(true)
        let day = "\(parts.tm_year + 1_900)-\(pad(parts.tm_mon + 1))-\(pad(parts.tm_mday))"
        return "\(day)T\(Self.clock(parts)).\(pad(Int32(nanoseconds / 1_000), to: 6))Z"
    }

    /// `09:30:00.123`, in the time zone of this computer.
    package var clock: String {
        "\(Self.clock(parts(false))).\(pad(Int32(nanoseconds / 1_000_000), to: 3))"
    }

    /// `1795858200.123456789`.
    package var unix: String { "\(seconds).\(pad(Int32(nanoseconds), to: 9))" }

    private static func clock(_ parts: tm) -> String {
        "\(pad(parts.tm_hour)):\(pad(parts.tm_min)):\(pad(parts.tm_sec))"
    }
}

private func pad(_ number: Int32, to count: Int = 2) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(count - digits.count, 0)) + digits
}
