import Waybill
import WireCore

/// Tells observers what happens to one stream: to its connections, its subscription and its events.
final class SSEReporter: Sendable {
    private struct State: Sendable {
        var host: String?
        var attempt = 1
        /// When the attempt under way was begun, or since when it is open.
        var begun = ContinuousClock.now
        var isOpen = false
        /// When the stream was asked for, or lost.
        var wanted = ContinuousClock.now
        var wasEverOpen = false
    }

    private let topic: String
    private let events: TransportEventSource
    private let state = Locked(State())

    init(topic: String, events: TransportEventSource) {
        self.topic = topic
        self.events = events
    }

    /// A host is connected to, at a certain attempt.
    func noteConnecting(to host: String, attempt: Int) {
        state.withLock { state in
            state.host = host
            state.attempt = attempt
            state.begun = .now
        }
        events.report(.connecting(to: host, attempt: attempt))
    }

    /// The request has gone to this host, perhaps after a redirect.
    func noteHost(_ host: String) {
        state.withLock { $0.host = host }
    }

    /// The server has begun to stream.
    func noteOpened() {
        let before = state.withLock { state in
            let before = state
            state.isOpen = true
            state.wasEverOpen = true
            state.begun = .now
            return before
        }
        events.report(contentsOf: [
            .connected(to: before.host, since: before.begun, attempt: before.attempt),
            .subscribed(topic: topic, since: before.wanted, isAgain: before.wasEverOpen),
        ])
    }

    /// Events have come.
    func noteReceived(_ batch: [Message]) {
        events.report(contentsOf: Self.received(batch))
    }

    private static func received(_ batch: [Message]) -> [TransportEvent] {
        let now = ContinuousClock.now
        return batch.map { .received(topic: $0.topic, byteCount: $0.body.count, at: now) }
    }

    /// The attempt is over, and with it the stream that it may have opened.
    func noteEnd(_ error: WaybillError?) {
        let before = state.withLock { state in
            let before = state
            if state.isOpen { state.wanted = .now }
            state.isOpen = false
            return before
        }
        let (host, begun) = (before.host, before.begun)
        if let error, !before.isOpen {
            let attempt = before.attempt
            events.report(
                .connectionFailed(to: host, since: begun, attempt: attempt, error: error)
            )
        } else {
            let begun = before.isOpen ? begun : nil
            events.report(.disconnected(from: host, since: begun, cause: error))
        }
    }

    /// The stream is asked for again after a while.
    func noteWait(until instant: ContinuousClock.Instant, attempt: Int, cause: WaybillError) {
        events.report(.waiting(until: instant, attempt: attempt, cause: cause))
    }

    /// The subscription is over.
    func noteSubscriptionEnd(_ error: WaybillError?) {
        let (wasEverOpen, wanted) = state.withLock { ($0.wasEverOpen, $0.wanted) }
        if let error, !wasEverOpen {
            events.report(.subscriptionRefused(topic: topic, since: wanted, error: error))
        } else {
            events.report(.subscriptionEnded(topic: topic, cause: error))
        }
    }
}
