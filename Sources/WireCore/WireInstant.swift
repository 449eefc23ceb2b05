/// A point on the monotonic time line of whoever drives a protocol core.
///
/// Cores never read a clock: the time comes in as an argument, so that a test of a 60-second keep
/// alive is a literal and not a wait. Only differences mean anything; the origin is the driver's.
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

    /// This instant moved by a duration; saturates instead of overflowing.
    package func advanced(by duration: Duration) -> WireInstant {
        advanced(byNanoseconds: duration.wireNanoseconds)
    }

    /// This instant moved by so many nanoseconds; saturates instead of overflowing.
    @inlinable
    package func advanced(byNanoseconds count: Int64) -> WireInstant {
        let (sum, overflow) = nanoseconds.addingReportingOverflow(count)
        return WireInstant(nanoseconds: overflow ? .max : sum)
    }

    /// The time from this instant to another, negative when the other is earlier.
    package func duration(to other: WireInstant) -> Duration {
        .nanoseconds(other.nanoseconds - nanoseconds)
    }

    @inlinable
    package static func < (left: WireInstant, right: WireInstant) -> Bool {
        left.nanoseconds < right.nanoseconds
    }
}

extension Duration {
    /// The duration in whole nanoseconds, saturated at the range of `Int64` (292 years).
    package var wireNanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        guard !overflow else { return seconds < 0 ? .min : .max }
        let (sum, carry) = whole.addingReportingOverflow(attoseconds / 1_000_000_000)
        return carry ? (seconds < 0 ? .min : .max) : sum
    }
}
