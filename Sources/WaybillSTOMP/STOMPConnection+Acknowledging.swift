import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// What becomes of the messages that a server wants acknowledged.
extension STOMPConnection {
    /// Settles a message that was subscribed to with manual acknowledgement.
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
        // In a transaction, as with a send: only its end is answered for sure.
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
            // At once: what the server sends because of it may overtake the receipt.
            if let transaction {
                // Should the transaction be aborted, the message waits again.
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

    /// Ends the wait of what was settled in a transaction: for good, or back to where it was.
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
