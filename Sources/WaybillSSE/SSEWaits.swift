import Waybill
import WaybillSession
import WireCore

/// How long a stream waits between two attempts: by the policy, and by what the server asks for.
struct SSEWaits: Sendable {
    /// The least wait after a connection without an event: 100 milliseconds.
    private static let leastWait = Duration.milliseconds(100)

    /// The reconnection time that the server has set; nil before.
    var serverTime: Duration?
    private let policy: ReconnectionPolicy
    private var schedule: ReconnectionSchedule

    init(_ policy: ReconnectionPolicy) {
        self.policy = policy
        schedule = ReconnectionSchedule(policy)
    }

    /// Notes that the server has begun to stream: after the policy's healthy time, earlier failures no longer count.
    mutating func noteConnected(at now: WireInstant) {
        schedule.noteConnected(at: now)
    }

    /// The wait before the next attempt.
    ///
    /// - Parameters:
    ///   - cause: Why the last attempt failed or the stream ended.
    ///   - retryAfter: The wait that the server's answer asks for.
    ///   - hasEvents: Whether the stream brought an event, and so was healthy, however soon it ended.
    ///   - now: The time.
    ///   - random: The dice: any 64 bits.
    /// - Returns: The wait; nil when there is no next attempt.
    mutating func delay(
        after cause: WaybillError,
        retryAfter: Duration?,
        hasEvents: Bool,
        at now: WireInstant,
        _ random: () -> UInt64
    ) -> Duration? {
        if hasEvents { schedule = ReconnectionSchedule(policy) }
        guard let drawn = schedule.delay(after: cause, at: now, random: random) else { return nil }
        // The server may ask for a longer wait, not for a shorter one.
        let asked = max(serverTime ?? .zero, retryAfter ?? .zero)
        let delay = max(drawn, min(asked, policy.maximumServerDelay))
        return hasEvents ? delay : max(delay, Self.leastWait)
    }
}
