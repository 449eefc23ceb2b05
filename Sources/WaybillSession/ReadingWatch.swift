import Waybill
import WaybillLink
import WireCore

/// Tells of the times in which waiting messages stop the reading of a connection, and ends the largest of their streams
/// when calls time out meanwhile.
final class ReadingWatch: Sendable {
    private struct State: Sendable {
        /// When reading was stopped; nil while the connection is read.
        var begin: WireInstant?
        var timer: UInt64?
        var isTold = false
        /// The last reason of the stop.
        var reason = ReadingPressure.Reason.account
    }

    /// The time after which a stop is told.
    static let timeout = Duration.seconds(5)

    private let state = Locked(State())
    private let account: MemoryAccount
    private let events: TransportEventSource
    private let clock: any TimerSource

    init(
        _ account: MemoryAccount,
        reportingTo events: TransportEventSource,
        by clock: any TimerSource
    ) {
        self.account = account
        self.events = events
        self.clock = clock
    }

    /// Notes that reading may have been stopped or resumed.
    ///
    /// - Parameter reason: Returns the present reason of the stop; called with a lock held.
    func update(_ reason: () -> ReadingPressure.Reason?) {
        let (timer, resumed) = state.withLock { state -> (UInt64?, Duration?) in
            guard let reason = reason() else {
                defer { state = State() }
                let duration = state.begin.map { $0.duration(to: clock.now) }
                return (state.timer, state.isTold ? duration : nil)
            }
            state.reason = reason
            guard state.begin == nil else { return (nil, nil) }
            let begin = clock.now
            state.begin = begin
            let end = begin.advanced(by: Self.timeout)
            state.timer = clock.scheduleTimer(at: end) { [weak self] in self?.tell(begin) }
            return (nil, nil)
        }
        if let timer { clock.cancelTimer(timer) }
        if let resumed { events.report(.readingResumed(after: resumed)) }
    }

    private func tell(_ begin: WireInstant) {
        let reason = state.withLock { state -> ReadingPressure.Reason? in
            guard state.begin == begin, !state.isTold else { return nil }
            state.timer = nil
            state.isTold = true
            return state.reason
        }
        guard let reason else { return }
        let largest = account.largestHolder(holdsBack: reason == .policy)
        events.report(.readingHeld(topic: largest?.topic, byteCount: account.byteCount))
    }

    /// Whether reading has been stopped for so long.
    func isStopped(for duration: Duration) -> Bool {
        state.withLock { $0.begin.map { $0.duration(to: clock.now) >= duration } ?? false }
    }
}
