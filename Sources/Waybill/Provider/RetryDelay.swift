import WireCore

/// The wait before a request is retried.
public struct RetryDelay: Sendable {
    private let body: @Sendable (_ retry: Int) -> Duration

    /// A delay by a custom rule.
    ///
    /// - Parameter body: Returns the delay before a retry, which counts from 1; a negative delay counts as zero.
    public init(_ body: @escaping @Sendable (_ retry: Int) -> Duration) {
        self.body = body
    }

    /// No delay.
    public static var none: RetryDelay { .constant(.zero) }

    /// The same delay each time.
    public static func constant(_ delay: Duration) -> RetryDelay {
        RetryDelay { _ in delay }
    }

    /// A limit that doubles each time up to a cap, with full jitter.
    ///
    /// The delay is random between zero and the limit, so that clients that failed together do not retry together.
    ///
    /// - Parameters:
    ///   - first: The limit before the first retry.
    ///   - cap: The highest limit.
    ///   - isJittered: Whether the delay is random; otherwise it is the limit.
    ///   - random: The source of random numbers.
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
            // The high half of the product is uniform in 0...longest.
            let share = (UInt64(longest) + 1).multipliedFullWidth(by: random()).high
            return .nanoseconds(Int64(share))
        }
    }

    /// Returns the delay before a retry, which counts from 1.
    public func duration(beforeRetry retry: Int) -> Duration {
        max(body(max(retry, 1)), .zero)
    }

    /// Returns nanoseconds, limited to the cap and never negative.
    private static func doubled(_ first: Duration, times: Int, upTo cap: Duration) -> Int64 {
        let cap = max(cap.wireNanoseconds, 0)
        let start = max(first.wireNanoseconds, 0)
        guard start > 0, times < 63 else { return min(start, cap) == 0 ? 0 : cap }
        let (product, overflow) = start.multipliedReportingOverflow(by: 1 << Int64(times))
        return overflow ? cap : min(product, cap)
    }
}
