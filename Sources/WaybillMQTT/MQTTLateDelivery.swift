import MQTTWire
import Waybill
import WaybillLink
import WireCore

/// Holds messages without a listener for as long as a policy says, and acknowledges the messages that it drops.
final class MQTTLateDelivery: Sendable {
    private struct State: Sendable {
        var messages: MQTTHeldMessages
        /// The timer for the oldest message.
        var timer: UInt64?
    }

    private let state: Locked<State>
    private let deliveries: MQTTDeliveries
    private let clock: any TimerSource

    init(_ policy: LateDeliveryPolicy, _ deliveries: MQTTDeliveries, clock: any TimerSource) {
        state = Locked(State(messages: MQTTHeldMessages(policy)))
        self.deliveries = deliveries
        self.clock = clock
    }

    /// Holds messages.
    ///
    /// - Returns: The receipts of the messages that have to go for them.
    func hold(_ run: MQTTArrivals.Run, of arrivals: MQTTArrivals) -> [MQTTDeliveryReceipt] {
        take { state in
            run.indices.flatMap { index in
                let receipt = arrivals.receipt(at: index)
                return state.messages.add(arrivals.publish(at: index), receipt, at: clock.now)
            }
        }
    }

    /// Takes the messages whose topics match one of the filters.
    func take(matching filters: [String]) -> [MQTTHeldMessages.Held] {
        state.withLock { state in filters.flatMap { state.messages.take(matching: $0) } }
    }

    /// Forgets the messages that the server sends again.
    func remove(_ repeated: MQTTRepeatedSerials) {
        state.withLock { $0.messages.remove { repeated.contains($0) } }
    }

    func dropAll() {
        drop { state in
            if let timer = state.timer.take() { clock.cancelTimer(timer) }
            return state.messages.takeAll()
        }
    }

    /// Drops the messages whose deadlines have passed.
    /// - Parameter deadline: The time of the timer; the clock may lag behind by a little.
    private func dropExpired(at deadline: WireInstant) {
        drop { state in
            state.timer = nil
            return state.messages.takeExpired(at: max(clock.now, deadline))
        }
    }

    /// Drops the messages that `body` takes.
    private func drop(_ body: (inout State) -> [MQTTHeldMessages.Held]) {
        for receipt in take(body) { deliveries.drop(receipt) }
    }

    /// Sets the timer for the oldest message that `body` leaves.
    ///
    /// - Returns: The receipts of the messages that `body` takes.
    private func take(
        _ body: (inout State) -> [MQTTHeldMessages.Held]
    ) -> [MQTTDeliveryReceipt] {
        state.withLock { state in
            let gone = body(&state)
            if state.timer == nil, let deadline = state.messages.deadline {
                state.timer = clock.scheduleTimer(at: deadline) { [weak self] in
                    self?.dropExpired(at: deadline)
                }
            }
            return gone.compactMap(\.receipt)
        }
    }
}
