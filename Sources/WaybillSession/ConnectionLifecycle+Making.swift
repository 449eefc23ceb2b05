import Waybill
import WireCore

// One attempt to connect to a service.
extension ConnectionLifecycle {
    /// Makes a session by the first words that were kept, with other credentials should they be refused.
    func make(
        for attempt: ConnectionAttempt<Connection>
    ) async throws -> ConnectionAttempt<Connection>.Made {
        guard let (words, timeout) = memory.withLock({ $0.greeting }) else {
            throw attempt.stopReason
        }
        var occasion = ConnectOccasion(
            isReconnection: !attempt.isFirst,
            isUnattended: attempt.isReconnection
        )
        while true {
            let greeting = try await actions.prepare(words, &occasion)
            do {
                let made = try await failover.first { route in
                    try await make(greeting, route, within: timeout, for: attempt)
                }
                occasion.noteSuccess()
                return made
            } catch let error as WaybillError {
                try await occasion.goOn(
                    after: error,
                    canReplaceCredentials: actions.canReplaceCredentials,
                    // Credentials that one host has taken may have expired by the time another one is asked.
                    wasAccepted: attempt.takeAcceptance()
                )
            }
        }
    }
}
