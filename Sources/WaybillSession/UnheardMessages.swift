package import Waybill
package import WaybillLink
import WireCore

/// Reports messages that no listener takes: up to 100 a second each by itself, and the others by their number.
package final class UnheardMessages: Sendable {
    private struct State: Sendable {
        /// The end of the present second.
        var end: WireInstant?
        var count = 0
        /// Those of the present second that were not reported.
        var rest = (count: 0, byteCount: 0)
    }

    /// The number of events in a second.
    package static let limit = 100

    private let state = Locked(State())
    private let events: TransportEventSource
    private let clock: any TimerSource

    package init(reportingTo events: TransportEventSource, by clock: any TimerSource) {
        self.events = events
        self.clock = clock
    }

    /// Reports a message.
    ///
    /// - Parameters:
    ///   - topic: Its topic; nil if that was not kept.
    ///   - byteCount: The length of its body.
    package func report(_ topic: String?, byteCount: Int) {
        guard events.isObserved else { return }
        let isReported = state.withLock { state in
            let now = clock.now
            if state.end == nil {
                let end = now.advanced(by: .seconds(1))
                state.end = end
                _ = clock.scheduleTimer(at: end) { [weak self] in self?.endSecond() }
            }
            state.count += 1
            guard state.count > Self.limit else { return true }
            state.rest.count += 1
            state.rest.byteCount += byteCount
            return false
        }
        guard isReported else { return }
        events.report(.dropped(1, byteCount: byteCount, topic: topic, reason: .noListener))
    }

    private func endSecond() {
        let rest = state.withLock { state in
            defer { state = State() }
            return state.rest
        }
        guard rest.count > 0 else { return }
        events.report(
            .dropped(rest.count, byteCount: rest.byteCount, topic: nil, reason: .noListener)
        )
    }
}
