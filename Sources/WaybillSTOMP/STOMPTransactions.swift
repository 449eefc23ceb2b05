import Waybill
import WaybillSession
import WireCore

/// The messages that were acknowledged in open transactions, until these end.
struct STOMPTransactions: Sendable {
    /// A message with its delivery.
    struct Held: Sendable {
        let id: Message.ID
        let delivery: Delivery<STOMPSubscriptions>
    }

    private var held: [WireName: [Held]] = [:]

    /// Holds a message that was acknowledged in a transaction.
    mutating func hold(
        _ delivery: Delivery<STOMPSubscriptions>,
        as id: Message.ID,
        in transaction: String
    ) {
        held[WireName(transaction), default: []].append(Held(id: id, delivery: delivery))
    }

    /// Ends a transaction.
    ///
    /// - Returns: The messages that were acknowledged in it.
    mutating func end(_ transaction: String) -> [Held] {
        held.removeValue(forKey: WireName(transaction)) ?? []
    }
}
