package import MQTTWire

/// A session state on its way from one place to the next, with what is requested meanwhile.
package struct MQTTSessionMove: Sendable {
    /// An action that follows on arrival.
    package enum Action: Sendable {
        case acknowledge(MQTTDeliveryReceipt, MQTTReasonCode)
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

    /// Withdraws a call on arrival.
    package mutating func cancel(_ call: MQTTPendingCall) {
        actions.append(.cancel(call))
    }

    /// Gives the exchange of a stored message another call on arrival.
    package mutating func adopt(_ number: UInt64, _ call: MQTTStoredCall) {
        actions.append(.adopt(number, call))
    }

    /// Carries out the actions on a state that has arrived.
    ///
    /// - Returns: The adopted calls whose exchanges have ended, to be told with no lock held.
    func carryOut(on state: inout MQTTSessionState) -> [MQTTStoredCall] {
        var ended: [MQTTStoredCall] = []
        for action in actions {
            switch action {
            case .acknowledge(let receipt, let reason): state.acknowledge(receipt, reason)
            case .cancel(let call): state.cancel(call)
            case .adopt(let number, let call):
                if !state.adopt(number, call) { ended.append(call) }
            }
        }
        return ended
    }
}
