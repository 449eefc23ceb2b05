package import Waybill
package import WireCore

/// Decides when to connect again, by a policy.
///
/// A value: each event is passed in with its time.
package struct ReconnectionSchedule: Sendable {
    /// The minimum wait after a failed attempt: 10 milliseconds.
    private static let leastPause = Duration.milliseconds(10)

    private let policy: ReconnectionPolicy
    /// The number of consecutive failures, including the loss of the connection.
    private var failureCount = 0
    /// The number of failures since the last progress.
    private var attempts = 0
    /// The time of the first failure since the last progress.
    private var firstFailure: WireInstant?
    /// The time at which the current connection was accepted; nil without one.
    private var connected: WireInstant?
    /// Whether the service has ever accepted a connection.
    private var hasAccepted = false

    package init(_ policy: ReconnectionPolicy) {
        self.policy = policy
    }

    /// Forgets all attempts, because a demand begins anew.
    ///
    /// - Parameter keepsWaits: Whether the waits go on growing, because the app has not asked for an attempt at once.
    package mutating func restart(keepsWaits: Bool = false) {
        attempts = 0
        firstFailure = nil
        connected = nil
        if !keepsWaits { failureCount = 0 }
    }

    /// Notes that the peer has accepted a connection.
    package mutating func noteConnected(at now: WireInstant) {
        connected = now
        hasAccepted = true
    }

    /// The time since the current connection was accepted; zero without one.
    package func life(at now: WireInstant) -> Duration { connected?.duration(to: now) ?? .zero }

    /// Whether the current connection has lasted the policy's healthy time; true without a connection.
    package func isHealthy(at now: WireInstant) -> Bool {
        connected.map { $0.duration(to: now) >= policy.healthyTime } ?? true
    }

    /// Returns the wait after the connection was lost, or after an attempt has failed.
    ///
    /// - Parameters:
    ///   - error: The cause.
    ///   - hasProgress: Whether the peer has answered more than the greeting on the connection that was lost. The
    ///     acceptance alone resets no limit, because a peer may accept each connection and end it at once.
    ///   - now: The time.
    ///   - random: Returns 64 random bits.
    /// - Returns: The wait before the next attempt; nil if no attempt follows.
    package mutating func delay(
        after error: WaybillError,
        hasProgress: Bool = false,
        at now: WireInstant,
        random: () -> UInt64
    ) -> Duration? {
        // A service that has accepted before may be changing its certificate, or a sign-in page stands before it.
        let isFatal = !error.isRetryable && !(hasAccepted && error.code == .tls)
        guard policy.isEnabled, !isFatal else { return nil }
        let wasHealthy = connected != nil && isHealthy(at: now)
        if wasHealthy { failureCount = 0 }
        // Progress resets the limits of attempts and time, but not the waits: a peer may answer something on each
        // connection and end it soon after.
        if wasHealthy || hasProgress {
            attempts = 0
            firstFailure = nil
        }
        connected = nil
        let first = firstFailure ?? now
        firstFailure = first
        failureCount += 1
        attempts += 1
        if let most = policy.maximumAttempts, attempts > most { return nil }
        let delay = pause(after: error, random)
        if let most = policy.maximumTime, first.duration(to: now) + delay > most { return nil }
        return delay
    }

    /// Returns the time until a request may connect, after the transport has stopped making attempts.
    ///
    /// An error that is not retryable does not make later waits longer: a request with other credentials may succeed.
    ///
    /// - Parameters:
    ///   - error: The cause.
    ///   - random: Returns 64 random bits.
    /// - Returns: The time; zero if the policy never reconnects, and so has no waits.
    package mutating func interval(after error: WaybillError, random: () -> UInt64) -> Duration {
        guard policy.isEnabled else { return .zero }
        failureCount = error.isRetryable ? failureCount + 1 : 1
        return pause(after: error, random)
    }

    private func pause(after error: WaybillError, _ random: () -> UInt64) -> Duration {
        // Whatever the random number is, an unreachable server is not asked again without a pause.
        let least = failureCount > 1 ? Self.leastPause : .zero
        let asked = min(error.serverDelay ?? .zero, policy.maximumServerDelay)
        let delay = max(drawn(random), asked, least)
        guard error.isServerBusy, error.serverDelay == nil else { return delay }
        return delay + max(policy.busyDelay, .zero)
    }

    private func drawn(_ random: () -> UInt64) -> Duration {
        let most = max(policy.maximumDelay, .zero)
        var ceiling = min(max(policy.initialDelay, .zero), most)
        // Stops doubling at the maximum, so that no policy leads to an overflow.
        for _ in 1..<min(failureCount, 64) where ceiling < most {
            ceiling = ceiling > most / 2 ? most : ceiling * 2
            if ceiling == .zero { break }
        }
        let nanoseconds = UInt64(clamping: ceiling.wireNanoseconds)
        guard nanoseconds > 0 else { return .zero }
        return .nanoseconds(Int64(clamping: random() % (nanoseconds + 1)))
    }
}
