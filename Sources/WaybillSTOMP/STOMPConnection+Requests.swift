import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// Requests other than acknowledgements.
extension STOMPConnection {
    /// Sends a message, waits for the receipt if one was requested, and reports the send if there are observers.
    func send(
        _ headers: STOMPHeaders,
        _ request: Request,
        _ options: SendOptions,
        asksForReceipt: Bool,
        isObserved: Bool
    ) async throws -> Receipt {
        try await perform(request, asksForReceipt: asksForReceipt) {
            (core, now, call) throws(STOMPSendError) in
            try core.send(
                headers,
                body: request.body,
                call: call,
                timeout: options.timeout,
                at: now
            )
            if isObserved { reportSent(request) }
        }
    }

    /// Reports a sent message.
    ///
    /// Called with the core's lock held, so that no receipt is reported before it.
    func reportSent(_ request: Request) {
        subscriptions.events.report(.sent(topic: request.topic, byteCount: request.body.count))
    }

    /// Sends a message without waiting.
    ///
    /// The receipt ends the call.
    ///
    /// - Throws: `WaybillError` if nothing was sent.
    func submit(
        _ headers: STOMPHeaders,
        _ request: Request,
        _ options: SendOptions,
        _ asksForReceipt: Bool,
        _ call: STOMPPendingCall
    ) throws(WaybillError) {
        do throws(STOMPSendError) {
            try driver.withCore { (core, now) throws(STOMPSendError) in
                try core.send(
                    headers,
                    body: request.body,
                    call: asksForReceipt ? call : nil,
                    timeout: options.timeout,
                    at: now
                )
                reportSent(request)
            }
        } catch {
            throw STOMPMapping.error(error, request)
        }
        if !asksForReceipt { call.succeed(.none) }
    }

    /// Withdraws a call.
    func cancel(_ call: STOMPPendingCall) {
        driver.withCore { core, _ in core.cancel(call) }
    }

    /// Sends SUBSCRIBE, and waits for the receipt if one was requested.
    func subscribe(
        _ subscription: STOMPMapping.Subscription,
        as id: String,
        _ request: Request,
        _ options: SubscribeOptions
    ) async throws {
        let mode = subscription.ackMode(in: version)
        let asks = options.asksForReceipt ?? configuration.asksForReceipts
        _ = try await perform(request, asksForReceipt: asks) {
            (core, now, call) throws(STOMPSendError) in
            try core.subscribe(
                id: id,
                destination: subscription.destination,
                ackMode: mode,
                headers: subscription.headers,
                call: call,
                timeout: options.timeout,
                at: now
            )
        }
    }

    /// Sends UNSUBSCRIBE, and waits for the receipt if one was requested.
    func unsubscribe(_ id: String, _ headers: STOMPHeaders, _ request: Request) async throws {
        _ = try await perform(request, asksForReceipt: configuration.asksForReceipts) {
            (core, now, call) throws(STOMPSendError) in
            try core.unsubscribe(id: id, headers: headers, call: call, at: now)
        }
    }

    /// Sends UNSUBSCRIBE without waiting.
    func leave(_ id: String, _ headers: STOMPHeaders = [:]) {
        try? driver.withCore(.immediate) { (core, now) throws(STOMPSendError) in
            try core.unsubscribe(id: id, headers: headers, at: now)
        }
    }

    /// The frames of a transaction.
    enum TransactionStep: Sendable {
        case begin, commit, abort
    }

    func transact(
        _ step: TransactionStep,
        _ transaction: String,
        _ request: Request
    ) async throws -> Receipt {
        let headers = STOMPMapping.wire(request.headers)
        var isSent = false
        // A cancellation or a timeout of the wait does not take the sent frame back.
        defer { if isSent, step != .begin { settleHeld(transaction, isTaken: step == .commit) } }
        return try await perform(request, asksForReceipt: configuration.asksForReceipts) {
            (core, now, call) throws(STOMPSendError) in
            switch step {
            case .begin:
                try core.begin(transaction: transaction, headers: headers, call: call, at: now)
            case .commit:
                try core.commit(transaction: transaction, headers: headers, call: call, at: now)
            case .abort:
                try core.abort(transaction: transaction, headers: headers, call: call, at: now)
            }
            isSent = true
        }
    }

    /// Sends, and waits for the receipt if one was requested; otherwise until the link has room.
    func perform(
        _ request: Request,
        asksForReceipt: Bool,
        _ send: (inout STOMPClientConnection, WireInstant, STOMPPendingCall?)
            throws(STOMPSendError) -> Void
    ) async throws -> Receipt {
        guard asksForReceipt else {
            let pause: SendPause
            do throws(STOMPSendError) {
                pause = try driver.send { (core, now) throws(STOMPSendError) in
                    try send(&core, now, nil)
                }.pause
            } catch {
                throw STOMPMapping.error(error, request)
            }
            if pause != .none { try await driver.wait(for: pause) }
            return Receipt(of: request.topic)
        }
        let call = STOMPPendingCall()
        do {
            let headers = try await call.answer(
                sending: { () throws(WaybillError) in
                    do throws(STOMPSendError) {
                        try driver.withCore { (core, now) throws(STOMPSendError) in
                            try send(&core, now, call)
                        }
                    } catch {
                        throw STOMPMapping.error(error, request)
                    }
                },
                withdrawing: { call in cancel(call) }
            )
            return Receipt(topic: request.topic, headers: STOMPMapping.headers(headers.list))
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }
}
