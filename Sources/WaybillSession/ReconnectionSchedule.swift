package import Waybill
package import WireCore

/// When to connect again, by a policy: a value that is told what happened, and when.
package struct ReconnectionSchedule: Sendable {
    /// The least wait after an attempt that failed: 10 milliseconds.
    private static let leastPause = Duration.milliseconds(10)

    private let policy: ReconnectionPolicy
    /// How many failures there were in a row, the loss of the connection among them.
    private var failureCount = 0
    /// How many there were since there was a connection.
    private var attempts = 0
    /// When the first of those was.
    private var firstFailure: WireInstant?
    /// Since when there has been a connection.
    private var connected: WireInstant?

    package init(_ policy: ReconnectionPolicy) {
        self.policy = policy
    }

    /// Notes that the peer has accepted a connection.
    package mutating func noteConnected(at now: WireInstant) {
        connected = now
    }

    /// How long to wait now that the connection was lost, or that an attempt to make one has failed.
    ///
    /// - Parameters:
    ///   - error: Why.
    ///   - now: The time.
    ///   - random: The dice: any 64 bits.
    /// - Returns: The wait before the next attempt; nil when there is to be none.
    package mutating func delay(
        after error: WaybillError,
        at now: WireInstant,
        random: () -> UInt64
    ) -> Duration? {
        // What goes wrong with a connection that was secure says nothing against the next one.
        let isFatal = !error.isRetryable && !(connected != nil && error.code == .tls)
        guard policy.isEnabled, !isFatal else { return nil }
        if let begin = connected, begin.duration(to: now) >= policy.healthyTime {
            failureCount = 0
            firstFailure = nil
        }
        // A loss that was mended is over, however short the time: only the waits remember it.
        if connected != nil {
            attempts = 0
            firstFailure = nil
        }
        connected = nil
        let first = firstFailure ?? now
        firstFailure = first
        failureCount += 1
        attempts += 1
        if let most = policy.maximumAttempts, attempts > most { return nil }
        // However the dice fall, a server that is gone is not asked without a pause.
        let least = failureCount > 1 ? Self.leastPause : .zero
        let asked = min(error.serverDelay ?? .zero, policy.maximumServerDelay)
        var delay = max(drawn(random), asked, least)
        if error.isServerBusy, error.serverDelay == nil { delay += max(policy.busyDelay, .zero) }
        if let most = policy.maximumTime, first.duration(to: now) + delay > most { return nil }
        return delay
    }

    private func drawn(_ random: () -> UInt64) -> Duration {
        let most = max(policy.maximumDelay, .zero)
        var ceiling = min(max(policy.initialDelay, .zero), most)
        // Doubled no further than it can grow: nothing overflows, whatever the policy says.
        for _ in 1..<min(failureCount, 64) where ceiling < most {
            ceiling = ceiling > most / 2 ? most : ceiling * 2
            if ceiling == .zero { break }
        }
        let nanoseconds = UInt64(clamping: ceiling.wireNanoseconds)
        guard nanoseconds > 0 else { return .zero }
        return .nanoseconds(Int64(clamping: random() % (nanoseconds + 1)))
    }
}
