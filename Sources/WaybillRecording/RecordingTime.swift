#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// Times since 1970-01-01 00:00 UTC, with microseconds.
enum RecordingTime {
    /// The time of the system's clock.
    static func now() -> Duration {
        var time = timespec()
        guard clock_gettime(CLOCK_REALTIME, &time) == 0 else { return .zero }
        return .microseconds(Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1_000)
    }

    /// The seconds with six decimals; a time before 1970 is zero.
    static func text(_ time: Duration) -> String {
        let (seconds, attoseconds) = time.components
        guard seconds >= 0, attoseconds >= 0 else { return "0.000000" }
        // The digits after a one, so that zeros at their start stay.
        let digits = String(attoseconds / 1_000_000_000_000 + 1_000_000)
        return "\(seconds).\(digits.utf8.dropFirst().text)"
    }

    /// The time of a JSON number without an exponent; nil beyond the years that 64 bits of microseconds have.
    ///
    /// Decimals after the sixth are cut.
    static func time(_ number: some Sequence<UInt8>) -> Duration? {
        var microseconds: Int64 = 0
        var decimals = -1
        for byte in number {
            guard byte != UInt8(ascii: ".") else {
                decimals = 0
                continue
            }
            guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
            guard decimals < 6 else { continue }
            if decimals >= 0 { decimals += 1 }
            let digit = Int64(byte - UInt8(ascii: "0"))
            guard let next = microseconds.times(10, plus: digit) else { return nil }
            microseconds = next
        }
        for _ in max(decimals, 0)..<6 {
            guard let next = microseconds.times(10, plus: 0) else { return nil }
            microseconds = next
        }
        return .microseconds(microseconds)
    }
}

extension Int64 {
    fileprivate func times(_ factor: Int64, plus summand: Int64) -> Int64? {
        let (product, isTooLong) = multipliedReportingOverflow(by: factor)
        let (sum, isTooLarge) = product.addingReportingOverflow(summand)
        return isTooLong || isTooLarge ? nil : sum
    }
}

extension Sequence where Element == UInt8 {
    /// The bytes as text.
    fileprivate var text: String { String(decoding: Array(self), as: UTF8.self) }
}
