import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// The acknowledgement of messages.
extension STOMPConnection {
    /// Sends ACK or NACK for a message of a subscription with manual acknowledgement.
    func settle(
        _ id: Message.ID,
        _ settlement: Settlement,
        _ request: Request
    ) async throws -> Receipt {
        let delivery = try subscriptions.manual.take(id, for: request)
        let token = delivery.name.token
        let transaction = settlement.transaction
        let headers = STOMPMapping.wire(request.headers)
        var isSent = false
        defer { if !isSent { subscriptions.putBack(delivery, as: id) } }
        // In a transaction, as for a send, only the end is certain to be answered.
        let asks = configuration.asksForReceipts && transaction == nil
        return try await perform(request, asksForReceipt: asks) {
            (core, now, call) throws(STOMPSendError) in
            if settlement.isAccepted {
                try core.acknowledge(
                    token,
                    transaction: transaction,
                    headers: headers,
                    call: call,
                    at: now
                )
            } else {
                try core.refuse(
                    token,
                    transaction: transaction,
                    headers: headers,
                    call: call,
                    at: now
                )
            }
            isSent = true
            // Noted at once, because messages that the server sends after it may arrive before the receipt.
            if let transaction {
                // If the transaction is aborted, the message waits again.
                let held = Held(id: id, delivery: delivery)
                state.withLock { $0.transactions[WireName(transaction), default: []].append(held) }
            } else {
                subscriptions.noteSettled(delivery.name)
            }
        }
    }

    /// Sends ACK without waiting, for a message of this connection.
    func acknowledge(_ token: STOMPAckToken) {
        try? driver.answer { (core, now) throws(STOMPSendError) in
            try core.acknowledge(token, at: now)
        }
    }

    /// Finishes the acknowledgements of a transaction: after ABORT their messages wait again.
    func settleHeld(_ transaction: String, isTaken: Bool) {
        let held =
            state.withLock { $0.transactions.removeValue(forKey: WireName(transaction)) } ?? []
        for one in held {
            if isTaken {
                subscriptions.noteSettled(one.delivery.name)
            } else {
                subscriptions.putBack(one.delivery, as: one.id)
            }
        }
    }
}
