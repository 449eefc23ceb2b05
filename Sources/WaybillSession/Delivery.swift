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

/// What a listener states beyond an ``Acknowledgement``, such as a reason.
///
/// Not generic: a delivery whose layout depends on its acknowledger makes each message of QoS 1 half as dear again.
package final class RankedAnswer: Sendable {
    /// The answer with the highest rank counts; of several the last one.
    let rank: UInt8
    package let value: any Sendable

    package init(_ value: any Sendable, rank: UInt8) {
        self.value = value
        self.rank = rank
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

    /// Acknowledges, as ``acknowledge(_:_:)`` does, with the answer that outweighs those of the other listeners.
    func acknowledge(_ name: Name, _ acknowledgement: Acknowledgement, _ answer: RankedAnswer)

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

    package func acknowledge(
        _ name: Name,
        _ acknowledgement: Acknowledgement,
        _ answer: RankedAnswer
    ) {
        acknowledge(name, acknowledgement)
    }

    package static func acknowledgementByteCount(of name: Name) -> Int { 0 }
}

private struct DeliveryState: Sendable {
    // Short, so that the answer takes no additional memory: each message has a delivery.
    var left: Int32
    var all = Acknowledgement(isTaken: false)
    var answer: RankedAnswer?
}

/// One arrival of a message, which is acknowledged when all its listeners are done with it.
package final class Delivery<Acknowledger: MessageAcknowledger>: MessageDelivery {
    /// The protocol's identification of this delivery.
    package let name: Acknowledger.Name
    private weak let acknowledger: Acknowledger?
    private let state: Locked<DeliveryState>

    /// - Parameters:
    ///   - name: The protocol's identification of the delivery.
    ///   - acknowledger: Acknowledges to the peer; referenced weakly.
    ///   - listeners: The number of listeners that acknowledge it, at least one.
    package init(_ name: Acknowledger.Name, acknowledger: Acknowledger, listeners: Int) {
        self.name = name
        self.acknowledger = acknowledger
        state = Locked(DeliveryState(left: Int32(clamping: listeners)))
    }

    package var validity: MessageValidity { acknowledger?.validity(of: name) ?? .valid }

    package func messageWasTaken() -> MessageValidity {
        guard let (all, answer) = combined(with: Acknowledgement()) else { return validity }
        guard let answer else { return acknowledger?.take(name, all) ?? .valid }
        let validity = validity
        acknowledger?.acknowledge(name, all, answer)
        return validity
    }

    package func messageWasDropped() { acknowledge(Acknowledgement(isTaken: false)) }

    package var acknowledgementByteCount: Int { Acknowledger.acknowledgementByteCount(of: name) }

    /// Notes that one listener is done.
    ///
    /// Refusing outweighs accepting, and taking outweighs dropping.
    package func acknowledge(_ acknowledgement: Acknowledgement) {
        guard let (all, answer) = combined(with: acknowledgement) else { return }
        if let answer {
            acknowledger?.acknowledge(name, all, answer)
        } else {
            acknowledger?.acknowledge(name, all)
        }
    }

    /// Adds one listener's acknowledgement.
    ///
    /// - Parameters:
    ///   - acknowledgement: The acknowledgement.
    ///   - answer: What the listener states beyond it; nil for nothing.
    /// - Returns: The combined acknowledgement, with the answer that outweighs all others, after the last listener's;
    ///   otherwise nil.
    package func combined(
        with acknowledgement: Acknowledgement,
        answering answer: RankedAnswer? = nil
    ) -> (all: Acknowledgement, answer: RankedAnswer?)? {
        state.withLock { state in
            state.left -= 1
            if acknowledgement.isTaken { state.all.isTaken = true }
            if !acknowledgement.isAccepted { state.all.isAccepted = false }
            if let answer, answer.rank >= state.answer?.rank ?? 0 { state.answer = answer }
            return state.left == 0 ? (state.all, state.answer) : nil
        }
    }
}
