import WireCore

/// The attempts to connect that this client gave up before the server answered.
///
/// Such a CONNECT may reach the server after the client has connected again: it takes the session over, and the server
/// ends the good connection with 0x8E (Session taken over; MQTT 5, 3.1.4-3). The reset of an abandoned stream prevents
/// that on the way to the next hop only: a proxy or a load balancer may hold the bytes.
struct MQTTLateAttempts: Sendable {
    /// How long after the connect timeout a late CONNECT is expected: 30 seconds.
    static var margin: Duration { .seconds(30) }

    /// How many attempts are remembered: 16.
    static var limit: Int { 16 }

    /// Until when each may arrive, the oldest first.
    private var deadlines: [WireInstant] = []

    /// Notes an attempt that was given up.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - connectTimeout: How long an attempt may take: its CONNECT may arrive for as long again, and ``margin``.
    mutating func note(at now: WireInstant, lasting connectTimeout: Duration) {
        if deadlines.count == Self.limit { deadlines.removeFirst() }
        deadlines.append(now.advanced(by: connectTimeout).advanced(by: Self.margin))
    }

    /// Counts one of the attempts as arrived.
    ///
    /// One attempt takes a session over once: a second 0x8E is another client's.
    ///
    /// - Parameter now: The time.
    /// - Returns: Whether there was one that may arrive now.
    mutating func take(at now: WireInstant) -> Bool {
        deadlines.removeAll { $0 < now }
        guard !deadlines.isEmpty else { return false }
        deadlines.removeFirst()
        return true
    }
}
