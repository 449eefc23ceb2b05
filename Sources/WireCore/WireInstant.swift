/// A point in time on the monotonic clock of a core's driver.
///
/// Cores never read a clock: the time is an argument, so that a test of a 60-second keep alive needs no wait. Only
/// differences have a meaning; the driver chooses the origin.
@usableFromInline
package struct WireInstant: Hashable, Comparable, Sendable {
    /// Nanoseconds since the driver's origin.
    @usableFromInline package var nanoseconds: Int64

    @inlinable
    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    /// The driver's origin.
    package static let zero = WireInstant(nanoseconds: 0)

    /// Later than every other instant.
    package static let never = WireInstant(nanoseconds: .max)

    /// Returns this instant moved by a duration; saturates instead of overflowing.
    package func advanced(by duration: Duration) -> WireInstant {
        advanced(byNanoseconds: duration.wireNanoseconds)
    }

    /// Returns this instant moved by a number of nanoseconds; saturates instead of overflowing.
    @inlinable
    package func advanced(byNanoseconds count: Int64) -> WireInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(count)
        return WireInstant(nanoseconds: overflow ? .max : sum)
    }

    /// Returns the time from this instant to another; negative if the other is earlier.
    package func duration(to other: WireInstant) -> Duration {
        .nanoseconds(other.nanoseconds - nanoseconds)
    }

    @inlinable
    package static func < (left: WireInstant, right: WireInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// The duration in whole nanoseconds, saturated to the range of `Int64` (292 years).
    package var wireNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, carry) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }
}
