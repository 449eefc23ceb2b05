import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

// Requests other than those that settle messages.
extension STOMPSession {
    /// Sends a message, and waits for the receipt if one is asked for.
    func send(
        _ headers: STOMPHeaders,
        _ request: Request,
        _ options: SendOptions
    ) async throws -> Receipt {
        let asks = STOMPMapping.asksForReceipt(options, headers, configuration)
        return try await perform(request, asksForReceipt: asks) {
            (core, now, call) throws(STOMPSendError) in
            try core.send(
                headers,
                body: request.body,
                call: call,
                timeout: options.timeout,
                at: now
            )
        }
    }

    /// Makes a subscription with an id of its own.
    func subscribe(
        _ subscription: STOMPMapping.Subscription,
        _ request: Request,
        _ options: SubscribeOptions
    ) async throws -> Messages<Message> {
        let (id, version) = state.withLock { state in
            state.lastSubscription += 1
            return (String(state.lastSubscription), state.version)
        }
        // 1.0 knows no acknowledgement of single messages; in order, the cumulative one amounts to it.
        let isOld = version == .v1_0 && subscription.isModeImplied
        let mode =
            isOld && subscription.ackMode == .clientIndividual ? .client : subscription.ackMode
        let policy = options.buffering ?? configuration.buffering
        let listener = MessageListener(
            options,
            buffering: policy,
            onLeave: { [weak self] _ in self?.listenerLeft(id) },
            pressure: pressure,
            onOverflow: { [weak self] in self?.listenerLeft(id) }
        )
        let messages = listener.source.messages
        state.withLock { state in
            state.subscriptions[id] = Subscription(
                destination: subscription.destination,
                listener: listener,
                policy: policy,
                isCumulative: mode == .client,
                // Whoever acknowledges by hand waits for receipts, which could then not be read.
                holdsBack: policy.overflow == .holdBack && !listener.isManual
            )
        }
        do {
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
            return messages
        } catch {
            listener.source.terminate()
            throw error
        }
    }

    /// Ends a subscription that nobody listens to any longer.
    func listenerLeft(_ id: String) {
        guard state.withLock({ $0.subscriptions.removeValue(forKey: id) }) != nil else { return }
        updatePressure(of: id)
        forgetDeliveries(of: [id])
        try? driver.withCore(.immediate) { (core, now) throws(STOMPSendError) in
            try core.unsubscribe(id: id, at: now)
        }
    }

    /// Ends every subscription to a destination.
    func unsubscribe(_ headers: STOMPHeaders, _ request: Request) async throws -> Receipt {
        let found = state.withLock { state in
            let found = state.subscriptions.filter { $0.value.destination == request.topic }
            for id in found.keys { state.subscriptions[id] = nil }
            return found.sorted { (UInt64($0.key) ?? 0) < (UInt64($1.key) ?? 0) }
        }
        guard !found.isEmpty else {
            throw WaybillError(.invalidEntry, "nothing subscribes to this destination")
                .about(request)
        }
        forgetDeliveries(of: Set(found.map(\.key)))
        defer {
            for (_, subscription) in found {
                subscription.listener.source.finish()
                pressure.forget(subscription.listener.source)
            }
        }
        var failure: (any Error)?
        for (id, _) in found {
            updatePressure(of: id)
            do {
                _ = try await perform(request, asksForReceipt: configuration.asksForReceipts) {
                    (core, now, call) throws(STOMPSendError) in
                    try core.unsubscribe(id: id, headers: headers, call: call, at: now)
                }
            } catch {
                // All of them go, whatever becomes of one; who was cancelled has not even sent it.
                failure = failure ?? error
                try? driver.withCore { (core, now) throws(STOMPSendError) in
                    try core.unsubscribe(id: id, headers: headers, at: now)
                }
            }
        }
        if let failure { throw failure }
        return Receipt(topic: request.topic)
    }

    /// What is done to a transaction.
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
        // What it takes to be cancelled or to wait in vain changes nothing about what was sent.
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

    /// Sends, and waits for the receipt if one is asked for, or for the link to have room.
    func perform(
        _ request: Request,
        asksForReceipt: Bool,
        _ send: (inout STOMPClientConnection, WireInstant, STOMPPendingCall?)
            throws(STOMPSendError) -> Void
    ) async throws -> Receipt {
        guard asksForReceipt else {
            let isCongested: Bool
            do throws(STOMPSendError) {
                isCongested = try driver.send { (core, now) throws(STOMPSendError) in
                    try send(&core, now, nil)
                }.isCongested
            } catch {
                throw STOMPMapping.error(error, request)
            }
            if isCongested { try await driver.waitUntilDrained() }
            return Receipt(topic: request.topic)
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
                withdrawing: { call in driver.withCore { core, _ in core.cancel(call) } }
            )
            return Receipt(topic: request.topic, headers: STOMPMapping.headers(headers.list))
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }
}
