package import Waybill
package import WireCore

/// Finds the subscription that a peer answers by ending each connection on which it is restored.
///
/// An end is *suspicious* if the peer ended the connection before it had confirmed all subscriptions that the
/// connection restores. With a *reason*, the peer has refused something that may be a subscription.
///
/// | state | a suspicious end | with a reason | all are confirmed |
/// | --- | --- | --- | --- |
/// | clear | → counted, 1 | → alone | |
/// | counted (n) | → counted, n + 1; → alone after 3 | → alone | → clear |
/// | alone (of none) | → alone, with the one that was sent | proven | → clear |
/// | alone (of a suspect) | the same one: proven; another one takes its place | proven | → clear |
///
/// In the state alone the subscriptions are sent one after another, and the suspect last, so that the others are there.
/// A proven one has failed, and the state is alone of none.
package struct SubscriptionSuspicion: Hashable, Sendable {
    /// What is known of the subscriptions.
    package enum State: Hashable, Sendable {
        /// Nothing.
        case clear
        /// As many suspicious ends in a row.
        case counted(ends: Int)
        /// One is sent at a time; the suspect was the last one at the last end.
        case alone(suspect: WireName?)
    }

    /// What the end of a connection says.
    package enum Verdict: Hashable, Sendable {
        /// Nothing.
        case none
        /// The end was suspicious.
        case counted
        /// The peer has ended the connection because of this subscription.
        case proven(String)
    }

    /// The number of suspicious ends in a row after which subscriptions are sent one at a time.
    package static let endsBeforeIsolation = 3

    package private(set) var state = State.clear
    /// The subscriptions that the present connection restores and the peer has not confirmed.
    private var unconfirmed: Set<WireName> = []
    /// The subscription that was sent alone.
    private var sent: WireName?

    package init() {}

    /// Whether subscriptions are sent one at a time.
    package var isAlone: Bool { if case .alone = state { true } else { false } }

    /// Begins to restore subscriptions over a connection.
    ///
    /// - Parameters:
    ///   - all: The subscriptions.
    ///   - key: Returns the key of a subscription.
    /// - Returns: The subscriptions in the order of sending.
    package mutating func begin<Subscription>(
        _ all: [Subscription],
        _ key: (Subscription) -> String
    ) -> [Subscription] {
        unconfirmed = Set(all.map { WireName(key($0)) })
        sent = nil
        guard !all.isEmpty else {
            state = .clear
            return all
        }
        guard case .alone(let suspect?) = state else { return all }
        return all.filter { WireName(key($0)) != suspect }
            + all.filter { WireName(key($0)) == suspect }
    }

    /// Notes that a subscription is sent alone.
    package mutating func noteSent(_ key: String) { sent = WireName(key) }

    /// Notes that the peer has answered a subscription, or that it is not wanted any more.
    package mutating func noteAnswered(_ key: String) {
        guard unconfirmed.remove(WireName(key)) != nil else { return }
        if sent == WireName(key) { sent = nil }
        if unconfirmed.isEmpty { state = .clear }
    }

    /// Notes the end of the connection.
    package mutating func noteEnd(_ end: ReplaySuspicion.End) -> Verdict {
        defer {
            unconfirmed = []
            sent = nil
        }
        guard !unconfirmed.isEmpty, end != .unrelated else { return .none }
        let hasReason = end != .closed
        switch state {
        case .clear: state = hasReason ? .alone(suspect: nil) : .counted(ends: 1)
        case .counted(let ends):
            let isOver = hasReason || ends + 1 >= Self.endsBeforeIsolation
            state = isOver ? .alone(suspect: nil) : .counted(ends: ends + 1)
        case .alone(let suspect):
            guard let sent else { break }
            guard hasReason || sent == suspect else {
                state = .alone(suspect: sent)
                break
            }
            state = .alone(suspect: nil)
            return .proven(sent.text)
        }
        return .counted
    }
}

extension WaybillError {
    /// The error of a subscription that the peer answers by ending the connection.
    package static func rejectedSubscription(
        to topic: String,
        after cause: WaybillError?
    ) -> WaybillError {
        var error = WaybillError(
            .rejected,
            "the server ended the connection each time it was sent this subscription",
            restating: cause
        )
        error.topic = topic
        return error
    }
}
