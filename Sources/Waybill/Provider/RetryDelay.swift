import WireCore

/// How long to wait before a request is tried again.
public struct RetryDelay: Sendable {
    private let body: @Sendable (_ retry: Int) -> Duration

    /// A delay by a rule of one's own.
    ///
    /// - Parameter body: Gives the delay before a retry, which counts from 1; less than zero is none.
    public init(_ body: @escaping @Sendable (_ retry: Int) -> Duration) {
        self.body = body
    }

    /// None.
    public static var none: RetryDelay { .constant(.zero) }

    /// The same each time.
    public static func constant(_ delay: Duration) -> RetryDelay {
        RetryDelay { _ in delay }
    }

    /// Doubled each time up to a cap, with full jitter: anything from zero to that, so that clients that
    /// have failed together do not come back together.
    ///
    /// - Parameters:
    ///   - first: The longest delay before the first retry.
    ///   - cap: The longest delay at all.
    ///   - isJittered: Whether dice are thrown; otherwise each delay is the longest.
    ///   - random: The dice.
    /// - Returns: The delay.
    public static func exponential(
        from first: Duration = .seconds(1),
        upTo cap: Duration = .seconds(60),
        isJittered: Bool = true,
        random: @escaping @Sendable () -> UInt64 = { .random(in: .min ... .max) }
    ) -> RetryDelay {
        RetryDelay { retry in
            let longest = doubled(first, times: retry - 1, upTo: cap)
            guard isJittered else { return .nanoseconds(longest) }
            // The high half of the product is even in 0...longest.
            let share = (UInt64(longest) + 1).multipliedFullWidth(by: random()).high
            return .nanoseconds(Int64(share))
        }
    }

    /// The delay before a retry, from 1.
    public func duration(beforeRetry retry: Int) -> Duration {
        max(body(max(retry, 1)), .zero)
    }

    /// Nanoseconds, saturated at the cap and never negative.
    private static func doubled(_ first: Duration, times: Int, upTo cap: Duration) -> Int64 {
        let cap = max(cap.wireNanoseconds, 0)
        let start = max(first.wireNanoseconds, 0)
        guard start > 0, times < 63 else { return min(start, cap) == 0 ? 0 : cap }
        let (product, overflow) = start.multipliedReportingOverflow(by: 1 << Int64(times))
        return overflow ? cap : min(product, cap)
    }
}
