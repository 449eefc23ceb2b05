package import Waybill
import WireCore

/// What becomes of a received message.
package struct Settlement: Hashable, Sendable {
    /// False when the app has refused the message.
    package var isAccepted = true
    /// False when nobody has taken it and nobody will.
    package var isTaken = true
    /// The transaction of which this is a part, where the protocol has such a thing.
    package var transaction: String?

    package init(isAccepted: Bool = true, isTaken: Bool = true, transaction: String? = nil) {
        self.isAccepted = isAccepted
        self.isTaken = isTaken
        self.transaction = transaction
    }
}

/// Tells the peer what became of a message, as a session does.
package protocol DeliverySettler: AnyObject, Sendable {
    /// What names a delivery to the peer.
    associatedtype Name: Sendable

    /// Called once for each delivery, with no lock held.
    ///
    /// - Parameters:
    ///   - name: The delivery.
    ///   - settlement: What became of it.
    func settle(_ name: Name, _ settlement: Settlement)

    /// As ``settle(_:_:)``, for a message that a consumer is about to take.
    /// - Returns: Whether the consumer gets it.
    func take(_ name: Name, _ settlement: Settlement) -> MessageValidity

    /// Whether a consumer gets a message that waits.
    func validity(of name: Name) -> MessageValidity

    /// How many bytes the acknowledgement of a delivery takes on the wire; zero where it is a few.
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

/// A received message until all its listeners are done with it; then the peer is told.
package final class Delivery<Settler: DeliverySettler>: MessageDelivery {
    /// What names it to the peer.
    package let name: Settler.Name
    private weak let settler: Settler?
    private let state: Locked<(left: Int, settlement: Settlement)>

    /// - Parameters:
    ///   - name: What names it to the peer.
    ///   - settler: Who tells the peer, as long as it is there.
    ///   - listeners: How many settle it, at least one.
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

    /// One listener is done; refusing counts more than accepting, taking more than dropping.
    package func settle(_ settlement: Settlement) {
        if let all = self.settlement(with: settlement) { settler?.settle(name, all) }
    }

    /// Counts one listener's settlement.
    /// - Returns: That of all listeners, after the last one's.
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
