package import Waybill
import WireCore

/// The deliveries that the app acknowledges itself, by the identifiers of their messages.
package final class ManualDeliveries<Acknowledger: MessageAcknowledger>: Sendable {
    private struct Held: Sendable {
        let delivery: Delivery<Acknowledger>
        /// The listener that has the message; nil after a transaction.
        var listener: ObjectIdentifier?
        /// Whether the app has taken the message.
        var isTaken = false
    }

    private struct State: Sendable {
        var waiting: [Message.ID: Held] = [:]
        var lastNumber: UInt64 = 0
        /// Resolve when a listener has no message any more.
        var drains: [ObjectIdentifier: Promise<Void>] = [:]
        /// The last messages whose subscriptions have ended.
        var ended: Set<Message.ID> = []

        /// Removes the drains that are over.
        mutating func takeDrained() -> [Promise<Void>] {
            guard !drains.isEmpty else { return [] }
            let busy = Set(waiting.values.lazy.filter(\.isTaken).compactMap(\.listener))
            let over = drains.filter { !busy.contains($0.key) }
            for listener in over.keys { drains[listener] = nil }
            return Array(over.values)
        }
    }

    private static var endedLimit: Int { 4_096 }

    /// The delivery of a held message.
    ///
    /// It acknowledges the message if a policy drops it.
    private final class HeldDelivery: MessageDelivery {
        private let id: Message.ID
        private let delivery: Delivery<Acknowledger>
        private weak let deliveries: ManualDeliveries?

        init(_ id: Message.ID, _ delivery: Delivery<Acknowledger>, _ deliveries: ManualDeliveries) {
            self.id = id
            self.delivery = delivery
            self.deliveries = deliveries
        }

        var origin: any MessageDelivery { delivery }

        var validity: MessageValidity { delivery.validity }

        var acknowledgementByteCount: Int { delivery.acknowledgementByteCount }

        func messageWasTaken() -> MessageValidity {
            deliveries?.noteTaken(id)
            return delivery.validity
        }

        func messageWasDropped() { deliveries?.take(id)?.messageWasDropped() }
    }

    private let state = Locked(State())

    package init() {}

    /// Holds a delivery until the app acknowledges it, and gives its message an identifier.
    func hold(
        _ delivery: Delivery<Acknowledger>,
        for message: inout Message,
        of listener: MessageSource
    ) {
        let id = state.withLock { state in
            state.lastNumber += 1
            let id = Message.ID(.number(state.lastNumber))
            state.waiting[id] = Held(delivery: delivery, listener: ObjectIdentifier(listener))
            return id
        }
        message.id = id
        message.delivery = HeldDelivery(id, delivery, self)
    }

    /// The number of messages that wait for their acknowledgements.
    package var count: Int { state.withLock { $0.waiting.count } }

    private func noteTaken(_ id: Message.ID) {
        state.withLock { $0.waiting[id]?.isTaken = true }
    }

    /// Whether a message waits for its acknowledgement.
    package func isWaiting(_ id: Message.ID) -> Bool {
        state.withLock { $0.waiting[id] != nil }
    }

    /// Carries out the command `ack` or `nack` of an entry.
    ///
    /// - Parameters:
    ///   - id: The identifier of the message.
    ///   - acknowledgement: The app's acknowledgement; a refusal for `nack`.
    ///   - request: The request.
    /// - Returns: An empty receipt.
    /// - Throws: `invalidEntry` if no delivery is held for the identifier.
    package func acknowledge(
        _ id: Message.ID,
        _ acknowledgement: Acknowledgement,
        _ request: Request
    ) throws(WaybillError) -> Receipt {
        try take(id, for: request).acknowledge(acknowledgement)
        return Receipt()
    }

    /// Takes a delivery out, so that the caller can acknowledge it in its own way.
    ///
    /// - Parameters:
    ///   - id: The identifier of the message.
    ///   - request: The request.
    /// - Returns: The delivery, which is no longer held.
    /// - Throws: `invalidEntry` if no delivery is held for the identifier.
    package func take(
        _ id: Message.ID,
        for request: Request
    ) throws(WaybillError) -> Delivery<Acknowledger> {
        guard let delivery = take(id) else {
            let hasEnded = state.withLock { $0.ended.contains(id) }
            let error = hasEnded ? WaybillError.subscriptionOver : .messageNotWaiting
            throw error.about(request)
        }
        return delivery
    }

    /// Puts back a delivery that could not be acknowledged, or that was acknowledged only in a transaction.
    package func putBack(_ delivery: Delivery<Acknowledger>, as id: Message.ID) {
        state.withLock { $0.waiting[id] = Held(delivery: delivery) }
    }

    /// Removes deliveries that were acknowledged together with another one, or that can no longer be acknowledged.
    ///
    /// - Parameters:
    ///   - isEnd: Whether their subscription has ended, which a later acknowledgement is told.
    ///   - isGone: Whether a delivery is removed.
    /// - Complexity: O(held deliveries).
    package func remove(byEnd isEnd: Bool = false, where isGone: (Acknowledger.Name) -> Bool) {
        let (gone, drained) = state.withLock { state in
            let gone = state.waiting.filter { isGone($0.value.delivery.name) }
            for id in gone.keys { state.waiting[id] = nil }
            if isEnd, !gone.isEmpty {
                if state.ended.count + gone.count > Self.endedLimit { state.ended = [] }
                state.ended.formUnion(gone.keys.prefix(Self.endedLimit))
            }
            return (gone, state.takeDrained())
        }
        // Released with no lock held.
        withExtendedLifetime(gone) {}
        for drain in drained { drain.resolve(.success(())) }
    }

    /// Removes all deliveries, when the connection is over.
    ///
    /// - Returns: Their names.
    @discardableResult
    package func removeAll() -> [Acknowledger.Name] {
        let (gone, drained) = state.withLock { state in
            let gone = state.waiting
            state.waiting = [:]
            return (gone, state.takeDrained())
        }
        for drain in drained { drain.resolve(.success(())) }
        return gone.values.map(\.delivery.name)
    }

    /// Waits until no message that the app has taken from a listener waits for its acknowledgement.
    ///
    /// Returns early when the task is cancelled.
    package func drain(_ listener: MessageSource) async {
        let drain = state.withLock { state -> Promise<Void>? in
            let listener = ObjectIdentifier(listener)
            let isBusy = state.waiting.values.contains { $0.isTaken && $0.listener == listener }
            guard isBusy else {
                return nil
            }
            let drain = state.drains[listener] ?? Promise()
            state.drains[listener] = drain
            return drain
        }
        try? await drain?.value()
    }

    private func take(_ id: Message.ID) -> Delivery<Acknowledger>? {
        let (held, drained) = state.withLock { state in
            (state.waiting.removeValue(forKey: id), state.takeDrained())
        }
        for drain in drained { drain.resolve(.success(())) }
        return held?.delivery
    }
}
