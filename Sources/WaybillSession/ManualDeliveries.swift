package import Waybill
import WireCore

/// The deliveries that the app settles by hand, by the names of their messages.
package final class ManualDeliveries<Settler: DeliverySettler>: Sendable {
    private struct State: Sendable {
        var waiting: [Message.ID: Delivery<Settler>] = [:]
        var lastNumber: UInt64 = 0
    }

    /// Rides on a message, so that one that is dropped is settled all the same.
    private final class Ticket: MessageDelivery {
        private let id: Message.ID
        private let delivery: Delivery<Settler>
        private weak let deliveries: ManualDeliveries?

        init(_ id: Message.ID, _ delivery: Delivery<Settler>, _ deliveries: ManualDeliveries) {
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

    /// Waits for the app to settle a message: gives it a name.
    func hold(_ delivery: Delivery<Settler>, for message: inout Message) {
        let id = state.withLock { state in
            state.lastNumber += 1
            let id = Message.ID(.number(state.lastNumber))
            state.waiting[id] = delivery
            return id
        }
        message.id = id
        message.delivery = Ticket(id, delivery, self)
    }

    /// Does what an entry with the command `ack` or `nack` asks for.
    ///
    /// - Parameters:
    ///   - id: The message.
    ///   - settlement: What the app says, refused for `nack`.
    ///   - request: The request.
    /// - Returns: That it is done.
    /// - Throws: `invalidEntry` when no message of that name waits.
    package func settle(
        _ id: Message.ID,
        _ settlement: Settlement,
        _ request: Request
    ) throws(WaybillError) -> Receipt {
        try take(id, for: request).settle(settlement)
        return Receipt()
    }

    /// Takes a delivery out, to settle it in a way of one's own.
    ///
    /// - Parameters:
    ///   - id: The message.
    ///   - request: The request.
    /// - Returns: The delivery, which no longer waits.
    /// - Throws: `invalidEntry` when no message of that name waits.
    package func take(
        _ id: Message.ID,
        for request: Request
    ) throws(WaybillError) -> Delivery<Settler> {
        guard let delivery = take(id) else {
            throw WaybillError.messageNotWaiting.about(request)
        }
        return delivery
    }

    /// Puts a delivery back that could not be settled, or only for a trial.
    package func putBack(_ delivery: Delivery<Settler>, as id: Message.ID) {
        state.withLock { $0.waiting[id] = delivery }
    }

    /// Forgets those that were settled with another one, or cannot be settled any longer.
    /// - Complexity: O(deliveries that wait).
    package func remove(where isGone: (Settler.Name) -> Bool) {
        let gone = state.withLock { state in
            let gone = state.waiting.filter { isGone($0.value.name) }
            for id in gone.keys { state.waiting[id] = nil }
            return gone
        }
        // Let go of with no lock held.
        withExtendedLifetime(gone) {}
    }

    /// Forgets all, when the connection is over.
    package func removeAll() {
        let gone = state.withLock { state in
            defer { state.waiting = [:] }
            return state.waiting
        }
        // Let go of with no lock held.
        withExtendedLifetime(gone) {}
    }

    private func take(_ id: Message.ID) -> Delivery<Settler>? {
        state.withLock { $0.waiting.removeValue(forKey: id) }
    }
}
