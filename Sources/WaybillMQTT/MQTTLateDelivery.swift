import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Holds messages without a listener for as long as a policy says, and acknowledges and reports them then.
final class MQTTLateDelivery: Sendable {
    private struct State: Sendable {
        var messages: MQTTHeldMessages
        /// The timer for the oldest message.
        var timer: UInt64?
    }

    private let state: Locked<State>
    private let deliveries: MQTTDeliveries
    private let unheard: UnheardMessages
    private let clock: any TimerSource

    init(
        _ messages: MQTTHeldMessages,
        _ deliveries: MQTTDeliveries,
        _ unheard: UnheardMessages,
        clock: any TimerSource
    ) {
        state = Locked(State(messages: messages))
        self.deliveries = deliveries
        self.unheard = unheard
        self.clock = clock
    }

    /// Whether a message without room was left to the server.
    var hasLeft: Bool { state.withLock { $0.messages.hasLeft } }

    /// Holds messages, and reports those that it does not.
    func hold(_ run: MQTTArrivals.Run, of arrivals: MQTTArrivals) {
        state.withLock { state in
            for index in run.indices {
                let publish = arrivals.publish(at: index)
                let receipt = arrivals.receipt(at: index)
                guard !state.messages.add(publish, receipt, at: clock.now) else { continue }
                unheard.report(run.topic, byteCount: publish.payload.count)
            }
            setTimer(&state)
        }
    }

    /// Takes the messages whose topics match one of the filters.
    func take(matching filters: [String]) -> [MQTTHeldMessages.Held] {
        state.withLock { state in filters.flatMap { state.messages.take(matching: $0) } }
    }

    /// Holds messages again.
    func putBack(_ held: [MQTTHeldMessages.Held]) {
        state.withLock { state in
            state.messages.putBack(held)
            setTimer(&state)
        }
    }

    /// Takes the receipts of the messages that the server has to send again.
    func takeLeft() -> [MQTTDeliveryReceipt] { state.withLock { $0.messages.takeLeft() } }

    /// Forgets the messages that the server sends again.
    func remove(_ repeated: MQTTRepeatedSerials) {
        state.withLock { $0.messages.remove { repeated.contains($0) } }
    }

    /// Forgets all messages, unacknowledged.
    ///
    /// - Returns: Their receipts.
    func forgetAll() -> [MQTTDeliveryReceipt] {
        state.withLock { state in
            if let timer = state.timer.take() { clock.cancelTimer(timer) }
            return state.messages.takeAll()
        }
    }

    /// Acknowledges and reports the messages whose deadlines have passed.
    ///
    /// - Parameter deadline: The time of the timer; the clock may lag behind by a little.
    private func expire(at deadline: WireInstant) {
        let (held, left) = state.withLock { state in
            state.timer = nil
            defer { setTimer(&state) }
            return state.messages.takeExpired(at: max(clock.now, deadline))
        }
        for one in held where one.receipt.map(deliveries.drop) ?? true {
            unheard.report(one.publish.topic, byteCount: one.publish.payload.count)
        }
        for receipt in left where deliveries.drop(receipt) { unheard.report(nil, byteCount: 0) }
    }

    /// Sets the timer for the oldest message.
    private func setTimer(_ state: inout State) {
        guard state.timer == nil, let deadline = state.messages.deadline else { return }
        state.timer = clock.scheduleTimer(at: deadline) { [weak self] in
            self?.expire(at: deadline)
        }
    }
}
