import WireCore

/// Bounds the share of retries among many requests, so that retries do not finish off a server in trouble.
///
/// A bucket of tokens, full at first: each attempt that fails takes one out, each request that succeeds
/// puts a part of one back, and there are no retries while it is not more than half full (gRPC A6, Throttling
/// Retry Attempts and Hedged RPCs). Give the same budget to the policies of all providers that talk to a server.
public final class RetryBudget: Sendable {
    // In thousandths, as precise as gRPC counts and free of rounding.
    private static let unit = 1_000
    private let capacity: Int
    private let credit: Int
    private let level: Locked<Int>

    /// Makes a full bucket.
    ///
    /// - Parameters:
    ///   - capacity: How many tokens it holds, 1 to 1,000; half as many failures in a row end all retries.
    ///   - credit: What a success puts back, in tokens, at least 0.001.
    public init(capacity: Int = 10, credit: Double = 0.1) {
        let capacity = min(max(capacity, 1), 1_000)
        self.capacity = capacity * Self.unit
        // What is no number counts as the least.
        let share = credit >= 0.001 ? min(credit, Double(capacity)) : 0.001
        self.credit = Int(share * Double(Self.unit))
        level = Locked(capacity * Self.unit)
    }

    /// Whether there may be retries at present.
    public var allowsRetries: Bool { level.withLock { $0 > capacity / 2 } }

    /// Takes a token out for an attempt that has failed.
    /// - Returns: Whether there may be a retry.
    func noteFailure() -> Bool {
        level.withLock { level in
            level = max(level - Self.unit, 0)
            return level > capacity / 2
        }
    }

    /// Puts a part of a token back for a request that has succeeded.
    func noteSuccess() {
        level.withLock { $0 = min($0 + credit, capacity) }
    }
}
