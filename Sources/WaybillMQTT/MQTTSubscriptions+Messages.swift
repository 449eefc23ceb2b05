import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

extension MQTTSubscriptions {
    // MARK: Messages

    /// Adds a message to the batch of each listener of its topic.
    ///
    /// A message without a listener is kept for a later one, or acknowledged and dropped.
    func collect(
        _ publish: MQTTPublish,
        _ receipt: MQTTDeliveryReceipt?,
        into batch: inout MessageBatch
    ) {
        let listeners = state.withLock { $0.router.listeners(for: publish) }
        guard !listeners.isEmpty else {
            if batch.isWatched { batch.show(MQTTMapping.message(publish)) }
            return hold(publish, receipt)
        }
        let message = MQTTMapping.message(publish)
        guard let receipt else { return batch.add(message, to: listeners) }
        batch.add(message, to: listeners, settling: receipt, by: self, manual: manual)
    }

    // MARK: Messages without a listener

    /// Keeps a message for a later subscription, or drops it.
    private func hold(_ publish: MQTTPublish, _ receipt: MQTTDeliveryReceipt?) {
        guard configuration.lateDelivery != nil else { return drop(receipt) }
        let gone = state.withLock { state in
            let gone = state.held?.add(publish, receipt, at: environment.clock.now) ?? []
            watch(&state)
            return gone
        }
        for one in gone { drop(one.receipt) }
    }

    /// Acknowledges a message that has no listener (MQTT 5, 4.5.0-2).
    private func drop(_ receipt: MQTTDeliveryReceipt?) {
        if let receipt { settle(receipt, Settlement()) }
    }

    /// Sets a timer for the deadline of the oldest held message, unless one is set.
    private func watch(_ state: inout State) {
        guard state.timer == nil, let deadline = state.held?.deadline else { return }
        state.timer = environment.clock.scheduleTimer(at: deadline) { [weak self] in
            self?.dropExpired(at: deadline)
        }
    }

    /// Drops the held messages whose deadline has passed.
    ///
    /// - Parameter deadline: The time of the timer; the clock may be a little behind it.
    private func dropExpired(at deadline: WireInstant) {
        let now = max(environment.clock.now, deadline)
        let gone = state.withLock { state in
            state.timer = nil
            let gone = state.held?.takeExpired(at: now) ?? []
            watch(&state)
            return gone
        }
        for one in gone { drop(one.receipt) }
    }

    func dropHeld() {
        let gone = state.withLock { state in
            if let timer = state.timer.take() { environment.clock.cancelTimer(timer) }
            return state.held?.takeAll() ?? []
        }
        for one in gone { drop(one.receipt) }
    }

    /// Delivers held messages to a new listener.
    func deliver(_ found: [MQTTHeldMessages.Held], to listener: MessageListener) {
        var batch = MessageBatch(reportingTo: events, hasQualities: true)
        for held in found {
            let message = MQTTMapping.message(held.publish)
            if let receipt = held.receipt {
                batch.add(message, to: [listener], settling: receipt, by: self, manual: manual)
            } else {
                batch.add(message, to: [listener])
            }
        }
        batch.deliver()
    }

    /// Carries out the command `ack` or `nack` for a message with manual acknowledgement.
    func settle(
        _ id: Message.ID,
        isAccepted: Bool,
        _ request: Request
    ) throws(WaybillError) -> Receipt {
        try manual.settle(id, Settlement(isAccepted: isAccepted), request)
    }

    func settle(_ receipt: MQTTDeliveryReceipt, _ settlement: Settlement) {
        _ = take(receipt, settlement)
    }

    func take(_ receipt: MQTTDeliveryReceipt, _ settlement: Settlement) -> MessageValidity {
        let reason: MQTTReasonCode = settlement.isAccepted ? .success : .unspecifiedError
        return session.acknowledge(receipt, reason) ? .valid : .comesAgain
    }

    func validity(of receipt: MQTTDeliveryReceipt) -> MessageValidity {
        session.repeatedSerials.contains(receipt) ? .comesAgain : .valid
    }

    /// Drops the unread messages that the server sends again, so that copies do not pile up.
    func removeRepeated(_ repeated: MQTTRepeatedSerials) {
        let sources = state.withLock { state in
            state.held?.remove { repeated.contains($0) }
            return state.router.sources
        }
        for source in sources {
            source.removeWaiting { delivery in
                guard let delivery = delivery as? Delivery<MQTTSubscriptions> else { return false }
                return repeated.contains(delivery.name)
            }
        }
    }
}
