package import Waybill
import WireCore

/// The deliveries that the app acknowledges itself, by the identifiers of their messages.
package final class ManualDeliveries<Acknowledger: MessageAcknowledger>: Sendable {
    private struct State: Sendable {
        var waiting: [Message.ID: Delivery<Acknowledger>] = [:]
        var lastNumber: UInt64 = 0
    }

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

        func messageWasTaken() -> MessageValidity { delivery.validity }

        func messageWasDropped() { deliveries?.take(id)?.messageWasDropped() }
    }

    private let state = Locked(State())

    package init() {}

    /// Holds a delivery until the app acknowledges it, and gives its message an identifier.
    func hold(_ delivery: Delivery<Acknowledger>, for message: inout Message) {
        let id = state.withLock { state in
            state.lastNumber += 1
            let id = Message.ID(.number(state.lastNumber))
            state.waiting[id] = delivery
            return id
        }
        message.id = id
        message.delivery = HeldDelivery(id, delivery, self)
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
            throw WaybillError.messageNotWaiting.about(request)
        }
        return delivery
    }

    /// Puts back a delivery that could not be acknowledged, or that was acknowledged only in a transaction.
    package func putBack(_ delivery: Delivery<Acknowledger>, as id: Message.ID) {
        state.withLock { $0.waiting[id] = delivery }
    }

    /// Removes deliveries that were acknowledged together with another one, or that can no longer be acknowledged.
    ///
    /// - Complexity: O(held deliveries).
    package func remove(where isGone: (Acknowledger.Name) -> Bool) {
        let gone = state.withLock { state in
            let gone = state.waiting.filter { isGone($0.value.name) }
            for id in gone.keys { state.waiting[id] = nil }
            return gone
        }
        // Released with no lock held.
        withExtendedLifetime(gone) {}
    }

    /// Removes all deliveries, when the connection is over.
    ///
    /// - Returns: Their names.
    @discardableResult
    package func removeAll() -> [Acknowledger.Name] {
        let gone = state.withLock { state in
            defer { state.waiting = [:] }
            return state.waiting
        }
        return gone.values.map(\.name)
    }

    private func take(_ id: Message.ID) -> Delivery<Acknowledger>? {
        state.withLock { $0.waiting.removeValue(forKey: id) }
    }
}
