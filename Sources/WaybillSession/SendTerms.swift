package import Waybill
package import WireCore

/// How long a send waits, and for what.
package struct SendTerms: Sendable {
    /// The number of the message in the store; nil if it is not stored.
    package var storedNumber: UInt64?
    /// Whether the send waits for any connection.
    package let isLasting: Bool
    package let command: EntryCommand
    /// The time of the call.
    private let begun: WireInstant

    package init(isLasting: Bool, command: EntryCommand, begun: WireInstant) {
        self.isLasting = isLasting
        self.command = command
        self.begun = begun
    }

    private var outlastsConnections: Bool { isLasting && storedNumber != nil }

    /// The rest of the stated time limit, which counts from the call for a message that is stored and waits.
    package func timeLeft(at now: WireInstant) -> Duration? {
        guard outlastsConnections else { return command[.timeout] }
        return command[.timeout].map { max($0 - begun.duration(to: now), .zero) }
    }

    /// The rest of the message's expiry, which counts from the call; nil without one.
    package func expiryLeft(at now: WireInstant) -> Duration? {
        command[.storedExpiry].map { $0 - begun.duration(to: now) }
    }

    /// The end of the message; nil if the time limit of its acknowledgement counts instead.
    package var end: WireInstant? {
        guard outlastsConnections, command[.timeout] == nil else { return nil }
        return command[.storedExpiry].map(begun.advanced) ?? WireInstant(nanoseconds: .max)
    }

    /// The longest wait in the offline queue; nil for no limit.
    ///
    /// - Parameters:
    ///   - policy: The limits of the queue.
    ///   - limit: The time limit of an acknowledgement.
    ///   - now: The time.
    /// - Returns: The wait.
    package func queueLimit(
        _ policy: OfflinePolicy,
        acknowledgement limit: Duration,
        at now: WireInstant
    ) -> Duration? {
        let stated = policy.timeToLive ?? timeLeft(at: now) ?? (end == nil ? limit : nil)
        return [stated, command[.storedExpiry]].compactMap { $0 }.min()
    }
}

extension OfflinePolicy {
    /// Whether sends and subscriptions wait for any connection; with the transport's store, if it has one.
    package func waits(with store: (any SessionStore)?) -> Bool {
        waitsForConnection ?? (isEnabled && store?.isOnDisk == true)
    }
}
