import WireCore

/// The attempts to connect that ended before the server accepted or refused them.
///
/// Such a CONNECT may reach the server after the client has connected again. It then takes the session over, and the
/// server ends the good connection with 0x8E (Session taken over; MQTT 5, 3.1.4-3). A reset of the abandoned stream
/// prevents that only up to the next hop, because a proxy or a load balancer may hold the bytes.
struct MQTTLateAttempts: Sendable {
    /// The time after the connect timeout in which a late CONNECT may still arrive: 30 seconds.
    static var margin: Duration { .seconds(30) }

    /// The maximum number of stored attempts: 16.
    static var limit: Int { 16 }

    private struct Attempt: Sendable {
        /// The end of the time in which it may arrive.
        let deadline: WireInstant
        let isEndedByPeer: Bool
    }

    /// The oldest first.
    private var attempts: [Attempt] = []

    /// Notes an attempt that ended without an answer.
    ///
    /// - Parameters:
    ///   - now: The time.
    ///   - connectTimeout: The timeout of an attempt. Its CONNECT may arrive for as long again, plus ``margin``.
    ///   - isEndedByPeer: Whether the peer has ended the stream. Most such CONNECTs have arrived and were refused by
    ///     that end, so that only the last of several such attempts is stored.
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

    /// Whether there is an attempt whose CONNECT may arrive now or later.
    func isAny(at now: WireInstant) -> Bool { attempts.contains { $0.deadline >= now } }

    /// Counts one of the attempts as arrived.
    ///
    /// One attempt takes a session over only once. A second 0x8E is caused by another client.
    ///
    /// - Parameter now: The time.
    /// - Returns: Whether there was an attempt whose CONNECT may arrive now.
    mutating func take(at now: WireInstant) -> Bool {
        attempts.removeAll { $0.deadline < now }
        guard !attempts.isEmpty else { return false }
        attempts.removeFirst()
        return true
    }
}
