import WireCore

/// The attempts to connect that ended before the server answered.
///
/// Such a CONNECT may reach the server after the client has connected again: it takes the session over, and the server
/// ends the good connection with 0x8E (Session taken over; MQTT 5, 3.1.4-3). The reset of an abandoned stream prevents
/// that on the way to the next hop only: a proxy or a load balancer may hold the bytes.
struct MQTTLateAttempts: Sendable {
    /// How long after the connect timeout a late CONNECT is expected: 30 seconds.
    static var margin: Duration { .seconds(30) }

    /// How many attempts are remembered: 16.
    static var limit: Int { 16 }

    private struct Attempt: Sendable {
        /// Until when it may arrive.
        let deadline: WireInstant
        let isEndedByPeer: Bool
    }

    /// The oldest first.
    private var attempts: [Attempt] = []

    /// Notes an attempt that has ended unanswered.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - connectTimeout: How long an attempt may take: its CONNECT may arrive for as long again, and ``margin``.
    ///   - isEndedByPeer: Whether the peer has ended the stream. Most of these have arrived and were refused that way, so
    ///     that of several one alone is taken for late.
    mutating func note(
        at now: WireInstant,
        lasting connectTimeout: Duration,
        isEndedByPeer: Bool
    ) {
        if isEndedByPeer { attempts.removeAll(where: \.isEndedByPeer) }
        if attempts.count == Self.limit { attempts.removeFirst() }
        let deadline = now.advanced(by: connectTimeout).advanced(by: Self.margin)
        attempts.append(Attempt(deadline: deadline, isEndedByPeer: isEndedByPeer))
    }

    /// Counts one of the attempts as arrived.
    ///
    /// One attempt takes a session over once: a second 0x8E is another client's.
    ///
    /// - Parameter now: The time.
    /// - Returns: Whether there was one that may arrive now.
    mutating func take(at now: WireInstant) -> Bool {
        attempts.removeAll { $0.deadline < now }
        guard !attempts.isEmpty else { return false }
        attempts.removeFirst()
        return true
    }
}
