import WaybillLink
import WireCore

/// The clock of a simulated world.
///
/// `@unchecked Sendable`, because: only the thread that simulates touches it.
final class SimulatedClock: TimerSource, @unchecked Sendable {
    private let scheduler: SimulationScheduler
    /// Whether it belongs to the world and not to what is tested.
    private let isCalm: Bool
    private var events: [UInt64: UInt64] = [:]
    private var lastToken: UInt64 = 0

    init(_ scheduler: SimulationScheduler, isCalm: Bool) {
        self.scheduler = scheduler
        self.isCalm = isCalm
    }

    var now: WireInstant { scheduler.loopNow }

    var preciseNow: WireInstant { scheduler.now }

    func scheduleTimer(
        at deadline: WireInstant,
        _ action: @escaping @Sendable () -> Void
    ) -> UInt64 {
        lastToken += 1
        let token = lastToken
        if !isCalm { scheduler.timerCount += 1 }
        events[token] = scheduler.schedule(
            at: deadline.advanced(by: scheduler.drawLateness())
        ) { [self] in
            forget(token)
            if isCalm { scheduler.calmly(action) } else { action() }
        }
        return token
    }

    func cancelTimer(_ token: UInt64) {
        if let event = forget(token) { scheduler.cancel(event) }
    }

    @discardableResult
    private func forget(_ token: UInt64) -> UInt64? {
        guard let event = events.removeValue(forKey: token) else { return nil }
        if !isCalm { scheduler.timerCount -= 1 }
        return event
    }
}
