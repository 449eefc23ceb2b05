import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// The frames of requests.
extension STOMPConnection {
    // MARK: Sends

    /// Sends a message, waits for the receipt if one was requested, and reports the send if there are observers.
    ///
    /// Calls `didConfirm` when the receipt has come, before the caller learns of it.
    func send(
        _ send: STOMPSend,
        _ request: Request,
        isObserved: Bool,
        didConfirm: (@Sendable () -> Void)? = nil
    ) async throws -> Receipt {
        try await perform(request, send.receipt, didConfirm: didConfirm) {
            (core, now, call) throws(STOMPSendError) in
            try write(send, request, call, isObserved: isObserved, to: &core, at: now)
        }
    }

    /// Sends a message without waiting.
    ///
    /// - Returns: Whether a receipt will end the call.
    /// - Throws: `WaybillError` if nothing was sent.
    func submit(
        _ send: STOMPSend,
        _ request: Request,
        _ call: STOMPPendingCall
    ) throws(WaybillError) -> Bool {
        try STOMPMapping.converting(request) { () throws(STOMPSendError) in
            try driver.withCore { (core, now) throws(STOMPSendError) in
                try write(send, request, send.asksForReceipt ? call : nil, to: &core, at: now)
            }
        }
    }

    /// Sends a message without a receipt.
    ///
    /// - Returns: The pause that the caller has to make before the next message.
    /// - Throws: `WaybillError` if nothing was sent.
    func submitUnconfirmed(
        _ send: STOMPSend,
        _ request: Request
    ) throws(WaybillError) -> SendPause {
        try STOMPMapping.converting(request) { () throws(STOMPSendError) in
            try driver.send { (core, now) throws(STOMPSendError) in
                _ = try write(send, request, nil, to: &core, at: now)
            }.pause
        }
    }

    /// Writes SEND, and reports it with the core's lock held, so that no receipt is reported before it.
    ///
    /// - Returns: Whether the call waits for a receipt.
    private func write(
        _ send: STOMPSend,
        _ request: Request,
        _ call: STOMPPendingCall?,
        isObserved: Bool = true,
        to core: inout STOMPClientConnection,
        at now: WireInstant
    ) throws(STOMPSendError) -> Bool {
        let waits = try core.send(
            send.headers,
            body: request.body,
            call: call,
            isRequired: send.receipt == .required,
            receiptID: send.receiptID,
            hasLength: send.hasLength,
            timeout: send.timeout,
            at: now
        )
        guard isObserved else { return waits }
        subscriptions.events.report(.sent(topic: request.topic, byteCount: request.body.count))
        return waits
    }

    /// Withdraws a call.
    func cancel(_ call: STOMPPendingCall) {
        driver.withCore { core, _ in core.cancel(call) }
    }

    // MARK: Subscriptions

    /// Sends SUBSCRIBE, and waits for the receipt if one was requested.
    ///
    /// Calls `didConfirm` when the receipt has come, before the frames that follow it.
    func subscribe(
        _ subscribe: STOMPSubscribe,
        as id: String,
        _ request: Request,
        didConfirm: (@Sendable () -> Void)? = nil
    ) async throws {
        let frame = STOMPRequest.subscribe(
            id: id,
            destination: subscribe.destination,
            ackMode: subscribe.ackMode(in: version),
            headers: subscribe.headers,
            isChosen: subscribe.identifier != nil
        )
        _ = try await perform(
            frame,
            request,
            timeout: request.command[.timeout],
            didConfirm: didConfirm
        )
    }

    /// Sends UNSUBSCRIBE without waiting.
    ///
    /// A chosen id is free again with the receipt, which is asked for as configured.
    func leave(_ id: String, _ headers: STOMPHeaders = [:]) {
        let demand = configuration.receiptDemand
        _ = try? driver.withCore(.immediate) { (core, now) throws(STOMPSendError) in
            let asks = demand.asks && core.scopes.subscriptions[id]?.isChosen == true
            try core.send(
                .unsubscribe(id: id, headers: headers),
                call: asks ? STOMPLeaveCall() : nil,
                isRequired: demand == .required,
                at: now
            )
        }
    }

    // MARK: Acknowledgements and transactions

    /// Sends ACK, or NACK for a refusal, for a message of a subscription with manual acknowledgement.
    func acknowledge(
        _ id: Message.ID,
        isAccepted: Bool,
        in transaction: String?,
        _ request: Request
    ) async throws -> Receipt {
        let delivery = try subscriptions.manual.take(id, for: request)
        let headers = STOMPHeaders(request.headers)
        let token = delivery.name.token
        let frame: STOMPRequest =
            isAccepted
            ? .acknowledge(token, transaction: transaction, headers: headers)
            : .refuse(token, transaction: transaction, headers: headers)
        var isSent = false
        defer {
            if !isSent {
                subscriptions.putBack(delivery, as: id)
            } else if transaction == nil {
                subscriptions.acknowledgeSkipped(token.subscriptionID, over: self)
            }
        }
        // In a transaction, as for a send, only the end is certain to be answered.
        return try await perform(frame, request, transaction == nil ? nil : STOMPReceiptDemand.none)
        {
            isSent = true
            // Noted at once, because messages that the server sends after it may arrive before the receipt.
            if let transaction {
                // If the transaction is aborted, the message waits again.
                state.withLock { $0.transactions.hold(delivery, as: id, in: transaction) }
            } else {
                subscriptions.noteAcknowledged(delivery.name)
            }
        }
    }

    /// Sends ACK without waiting, for a message of this connection.
    func acknowledge(_ token: STOMPAckToken) {
        try? driver.answer { (core, now) throws(STOMPSendError) in
            try core.send(.acknowledge(token), at: now)
        }
    }

    /// Sends COMMIT, or ABORT, and finishes the acknowledgements of the transaction.
    func end(
        _ transaction: String,
        commits: Bool,
        _ request: Request
    ) async throws -> Receipt {
        let headers = STOMPHeaders(request.headers)
        var isSent = false
        // A cancellation or a timeout of the wait does not take the sent frame back.
        defer { if isSent { endTransaction(transaction, isTaken: commits) } }
        let frame: STOMPRequest =
            commits
            ? .commit(transaction: transaction, headers: headers)
            : .abort(transaction: transaction, headers: headers)
        return try await perform(frame, request) { isSent = true }
    }

    /// Finishes the acknowledgements of a transaction: after ABORT their messages wait again.
    private func endTransaction(_ transaction: String, isTaken: Bool) {
        for one in state.withLock({ $0.transactions.end(transaction) }) {
            if isTaken {
                let name = one.delivery.name
                subscriptions.noteAcknowledged(name)
                subscriptions.acknowledgeSkipped(name.token.subscriptionID, over: self)
            } else {
                subscriptions.putBack(one.delivery, as: one.id)
            }
        }
    }

    // MARK: All requests

    /// Sends a frame, and waits for the receipt if one was requested: as the entry says, else as the parameter says,
    /// else as configured.
    ///
    /// Calls `note` when the frame was written, with the core's lock held. An id of the receipt that is taken fails the
    /// request, unless it may be replaced.
    func perform(
        _ frame: STOMPRequest,
        _ request: Request,
        _ receipt: STOMPReceiptDemand? = nil,
        timeout: Duration? = nil,
        replacingTakenID replaces: Bool = false,
        noting note: () -> Void = {},
        didConfirm: (@Sendable () -> Void)? = nil
    ) async throws -> Receipt {
        let stated = request.command[.receipt]
        let receipt =
            stated.map(STOMPReceiptDemand.init) ?? receipt ?? configuration.receiptDemand
        return try await perform(request, receipt, didConfirm: didConfirm) {
            (core, now, call) throws(STOMPSendError) in
            var id = stated?.chosenIdentifier
            if replaces, let chosen = id, core.receiptFault(of: chosen) != nil { id = nil }
            let waits = try core.send(
                frame,
                call: call,
                isRequired: receipt == .required,
                receiptID: id,
                timeout: timeout,
                at: now
            )
            note()
            return waits
        }
    }

    /// Sends, and waits for the receipt if one was requested; otherwise until the link has room.
    private func perform(
        _ request: Request,
        _ receipt: STOMPReceiptDemand,
        didConfirm: (@Sendable () -> Void)? = nil,
        _ send: (inout STOMPClientConnection, WireInstant, STOMPPendingCall?)
            throws(STOMPSendError) -> Bool
    ) async throws -> Receipt {
        guard receipt.asks else {
            let pause = try STOMPMapping.converting(request) { () throws(STOMPSendError) in
                try driver.send { (core, now) throws(STOMPSendError) in
                    _ = try send(&core, now, nil)
                }.pause
            }
            if pause != .none { try await driver.wait(for: pause, of: request) }
            return Receipt(of: request.topic)
        }
        let call = STOMPPendingCall(willSucceed: didConfirm)
        var waits = true
        do {
            let headers = try await call.answer(
                sending: { () throws(WaybillError) in
                    waits = try STOMPMapping.converting(request) { () throws(STOMPSendError) in
                        try driver.withCore { (core, now) throws(STOMPSendError) in
                            try send(&core, now, call)
                        }
                    }
                    if !waits { call.succeed(.none) }
                },
                withdrawing: { call in cancel(call) }
            )
            if !waits { try await driver.wait(for: .drain, of: request) }
            return STOMPMapping.receipt(request, headers)
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }
}
