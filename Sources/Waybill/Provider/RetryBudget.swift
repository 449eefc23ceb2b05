import WireCore

/// Limits the share of retries among many requests, so that retries do not overload a failing server.
///
/// A budget is a bucket of tokens, full at first. Each failed attempt takes one token out, and each successful request
/// puts a part of a token back. There are no retries while the bucket is at most half full (gRPC A6, Throttling Retry
/// Attempts and Hedged RPCs). Give the same budget to the policies of all providers of one server.
public final class RetryBudget: Sendable {
    // In thousandths, as precise as in gRPC and without rounding errors.
    private static let unit = 1_000
    private let capacity: Int
    private let credit: Int
    private let level: Locked<Int>

    /// Makes a full bucket.
    ///
    /// - Parameters:
    ///   - capacity: The number of tokens, 1 to 1,000; half as many failures in a row stop all retries.
    ///   - credit: The tokens that a success puts back, at least 0.001.
    public init(capacity: Int = 10, credit: Double = 0.1) {
        let capacity = min(max(capacity, 1), 1_000)
        self.capacity = capacity * Self.unit
        // NaN counts as the minimum.
        let share = credit >= 0.001 ? min(credit, Double(capacity)) : 0.001
        self.credit = Int(share * Double(Self.unit))
        level = Locked(capacity * Self.unit)
    }

    /// Whether retries are allowed at present.
    public var allowsRetries: Bool { level.withLock { $0 > capacity / 2 } }

    /// Takes a token out for a failed attempt.
    ///
    /// - Returns: Whether a retry is allowed.
    func noteFailure() -> Bool {
        level.withLock { level in
            level = max(level - Self.unit, 0)
            return level > capacity / 2
        }
    }

    /// Puts a part of a token back for a successful request.
    func noteSuccess() {
        level.withLock { $0 = min($0 + credit, capacity) }
    }
}
