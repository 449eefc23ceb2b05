package import Waybill
import WireCore

/// How a received message is acknowledged.
package struct Settlement: Hashable, Sendable {
    /// False when the app has refused the message.
    package var isAccepted = true
    /// False when the message was dropped, so that no consumer gets it.
    package var isTaken = true
    /// The transaction of the acknowledgement, in protocols with transactions.
    package var transaction: String?

    package init(isAccepted: Bool = true, isTaken: Bool = true, transaction: String? = nil) {
        self.isAccepted = isAccepted
        self.isTaken = isTaken
        self.transaction = transaction
    }
}

/// Acknowledges messages to the peer.
///
/// The connection or its session implements it.
package protocol DeliverySettler: AnyObject, Sendable {
    /// The protocol's identification of a delivery.
    associatedtype Name: Sendable

    /// Acknowledges a delivery. Called once for each delivery, with no lock held.
    ///
    /// - Parameters:
    ///   - name: The delivery.
    ///   - settlement: How the delivery is acknowledged.
    func settle(_ name: Name, _ settlement: Settlement)

    /// Acknowledges, as ``settle(_:_:)`` does, a message that a consumer is about to take.
    ///
    /// - Returns: Whether the consumer gets the message.
    func take(_ name: Name, _ settlement: Settlement) -> MessageValidity

    /// Whether a consumer gets a waiting message.
    func validity(of name: Name) -> MessageValidity

    /// The size of a delivery's acknowledgement on the wire, in bytes; zero if it is only a few bytes.
    static func acknowledgementByteCount(of name: Name) -> Int
}

extension DeliverySettler {
    package func take(_ name: Name, _ settlement: Settlement) -> MessageValidity {
        settle(name, settlement)
        return .valid
    }

    package func validity(of name: Name) -> MessageValidity { .valid }

    package static func acknowledgementByteCount(of name: Name) -> Int { 0 }
}

/// One arrival of a message, which is acknowledged when all its listeners are done with it.
package final class Delivery<Settler: DeliverySettler>: MessageDelivery {
    /// The protocol's identification of this delivery.
    package let name: Settler.Name
    private weak let settler: Settler?
    private let state: Locked<(left: Int, settlement: Settlement)>

    /// - Parameters:
    ///   - name: The protocol's identification of the delivery.
    ///   - settler: Acknowledges to the peer; referenced weakly.
    ///   - listeners: The number of listeners that settle it, at least one.
    package init(_ name: Settler.Name, settler: Settler, listeners: Int) {
        self.name = name
        self.settler = settler
        state = Locked((listeners, Settlement(isTaken: false)))
    }

    package var validity: MessageValidity { settler?.validity(of: name) ?? .valid }

    package func messageWasTaken() -> MessageValidity {
        guard let all = settlement(with: Settlement()) else { return validity }
        return settler?.take(name, all) ?? .valid
    }

    package func messageWasDropped() { settle(Settlement(isTaken: false)) }

    package var acknowledgementByteCount: Int { Settler.acknowledgementByteCount(of: name) }

    /// Notes that one listener is done.
    ///
    /// Refusing outweighs accepting, and taking outweighs dropping.
    package func settle(_ settlement: Settlement) {
        if let all = self.settlement(with: settlement) { settler?.settle(name, all) }
    }

    /// Adds one listener's settlement.
    ///
    /// - Returns: The combined settlement, after the last listener's; otherwise nil.
    private func settlement(with settlement: Settlement) -> Settlement? {
        state.withLock { state in
            state.left -= 1
            state.settlement.isTaken = state.settlement.isTaken || settlement.isTaken
            if !settlement.isAccepted { state.settlement.isAccepted = false }
            if let transaction = settlement.transaction {
                state.settlement.transaction = transaction
            }
            return state.left == 0 ? state.settlement : nil
        }
    }
}
