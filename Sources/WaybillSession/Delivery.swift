package import Waybill
import WireCore

/// How a received message is acknowledged.
package struct Acknowledgement: Hashable, Sendable {
    /// False when the app has refused the message.
    package var isAccepted = true
    /// False when the message was dropped, so that no consumer gets it.
    package var isTaken = true

    package init(isAccepted: Bool = true, isTaken: Bool = true) {
        self.isAccepted = isAccepted
        self.isTaken = isTaken
    }
}

/// Acknowledges messages to the peer.
///
/// The connection or its session implements it.
package protocol MessageAcknowledger: AnyObject, Sendable {
    /// The protocol's identification of a delivery.
    associatedtype Name: Sendable

    /// Acknowledges a delivery. Called once for each delivery, with no lock held.
    ///
    /// - Parameters:
    ///   - name: The delivery.
    ///   - acknowledgement: How the delivery is acknowledged.
    func acknowledge(_ name: Name, _ acknowledgement: Acknowledgement)

    /// Acknowledges, as ``acknowledge(_:_:)`` does, a message that a consumer is about to take.
    ///
    /// - Returns: Whether the consumer gets the message.
    func take(_ name: Name, _ acknowledgement: Acknowledgement) -> MessageValidity

    /// Whether a consumer gets a waiting message.
    func validity(of name: Name) -> MessageValidity

    /// The size of a delivery's acknowledgement on the wire, in bytes; zero if it is only a few bytes.
    static func acknowledgementByteCount(of name: Name) -> Int
}

extension MessageAcknowledger {
    package func take(_ name: Name, _ acknowledgement: Acknowledgement) -> MessageValidity {
        acknowledge(name, acknowledgement)
        return .valid
    }

    package func validity(of name: Name) -> MessageValidity { .valid }

    package static func acknowledgementByteCount(of name: Name) -> Int { 0 }
}

/// One arrival of a message, which is acknowledged when all its listeners are done with it.
package final class Delivery<Acknowledger: MessageAcknowledger>: MessageDelivery {
    /// The protocol's identification of this delivery.
    package let name: Acknowledger.Name
    private weak let acknowledger: Acknowledger?
    private let state: Locked<(left: Int, all: Acknowledgement)>

    /// - Parameters:
    ///   - name: The protocol's identification of the delivery.
    ///   - acknowledger: Acknowledges to the peer; referenced weakly.
    ///   - listeners: The number of listeners that acknowledge it, at least one.
    package init(_ name: Acknowledger.Name, acknowledger: Acknowledger, listeners: Int) {
        self.name = name
        self.acknowledger = acknowledger
        state = Locked((listeners, Acknowledgement(isTaken: false)))
    }

    package var validity: MessageValidity { acknowledger?.validity(of: name) ?? .valid }

    package func messageWasTaken() -> MessageValidity {
        guard let all = combined(with: Acknowledgement()) else { return validity }
        return acknowledger?.take(name, all) ?? .valid
    }

    package func messageWasDropped() { acknowledge(Acknowledgement(isTaken: false)) }

    package var acknowledgementByteCount: Int { Acknowledger.acknowledgementByteCount(of: name) }

    /// Notes that one listener is done.
    ///
    /// Refusing outweighs accepting, and taking outweighs dropping.
    package func acknowledge(_ acknowledgement: Acknowledgement) {
        if let all = combined(with: acknowledgement) { acknowledger?.acknowledge(name, all) }
    }

    /// Adds one listener's acknowledgement.
    ///
    /// - Returns: The combined acknowledgement, after the last listener's; otherwise nil.
    package func combined(with acknowledgement: Acknowledgement) -> Acknowledgement? {
        state.withLock { state in
            state.left -= 1
            if acknowledgement.isTaken { state.all.isTaken = true }
            if !acknowledgement.isAccepted { state.all.isAccepted = false }
            return state.left == 0 ? state.all : nil
        }
    }
}
