package import MQTTWire
import WireCore

/// A session state on its way from one place to the next, with what is requested meanwhile.
package struct MQTTSessionMove: Sendable {
    /// An action that follows on arrival.
    package enum Action: Sendable {
        case acknowledge(MQTTDeliveryReceipt, MQTTReasonCode)
        /// With the call that waits for the end of the exchange.
        case answer(MQTTDeliveryReceipt, MQTTReceiverAnswer, MQTTPendingCall?)
        case cancel(MQTTPendingCall)
        case adopt(UInt64, MQTTStoredCall)
    }

    /// In the order of the requests.
    package private(set) var actions: [Action] = []
    /// The QoS 1 messages of earlier connections that the server sends again.
    package let repeatedSerials: MQTTRepeatedSerials

    package init(_ repeatedSerials: MQTTRepeatedSerials = MQTTRepeatedSerials()) {
        self.repeatedSerials = repeatedSerials
    }

    /// Acknowledges a message on arrival.
    ///
    /// - Returns: False for a message of an earlier connection that the server sends again.
    package mutating func acknowledge(
        _ receipt: MQTTDeliveryReceipt,
        _ reason: MQTTReasonCode
    ) -> Bool {
        guard !repeatedSerials.contains(receipt) else { return false }
        actions.append(.acknowledge(receipt, reason))
        return true
    }

    /// Answers a message on arrival, with the call that waits for the end of the exchange.
    package mutating func answer(
        _ receipt: MQTTDeliveryReceipt,
        _ answer: MQTTReceiverAnswer,
        awaitedBy call: MQTTPendingCall?
    ) {
        actions.append(.answer(receipt, answer, call))
    }

    /// Withdraws a call on arrival.
    package mutating func cancel(_ call: MQTTPendingCall) {
        actions.append(.cancel(call))
    }

    /// Gives the exchange of a stored message another call on arrival.
    package mutating func adopt(_ number: UInt64, _ call: MQTTStoredCall) {
        actions.append(.adopt(number, call))
    }

    /// The calls that the actions end, to be told with no lock held.
    struct Ended {
        /// The adopted calls whose exchanges have ended.
        var stored: [MQTTStoredCall] = []
        /// The calls of answers, with what becomes of them.
        var answered: [(call: MQTTPendingCall?, completion: MQTTCompletion)] = []
    }

    /// Carries out the actions on a state that has arrived.
    ///
    /// - Parameters:
    ///   - state: The state.
    ///   - deadline: The time limit of calls that wait for the end of an exchange.
    /// - Returns: The calls that end.
    func carryOut(on state: inout MQTTSessionState, deadline: WireInstant) -> Ended {
        var ended = Ended()
        for action in actions {
            switch action {
            case .acknowledge(let receipt, let reason): state.acknowledge(receipt, reason)
            case .answer(let receipt, let answer, let call):
                let completion = state.acknowledge(
                    receipt,
                    answer,
                    awaitedBy: call,
                    deadline: deadline
                )
                ended.answered.append((call, completion))
            case .cancel(let call): state.cancel(call)
            case .adopt(let number, let call):
                if !state.adopt(number, call) { ended.stored.append(call) }
            }
        }
        return ended
    }
}
