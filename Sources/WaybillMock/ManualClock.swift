import Waybill
package import WaybillLink
import WireCore

/// A clock that moves only when a test says so.
///
/// Give it to a provider for the delays before retries, to a mock for its own, and to a transport under
/// test for keep alive and timeouts: a wait of a minute is then a line of code.
public final class ManualClock: Clock {
    /// A point on the clock's time line.
    public struct Instant: InstantProtocol {
        /// The time since the clock was made.
        public var offset: Duration

        /// A point so long after the clock was made.
        public init(offset: Duration) {
            self.offset = offset
        }

        /// This point moved by a duration.
        public func advanced(by duration: Duration) -> Instant {
            Instant(offset: offset + duration)
        }

        /// The time from this point to another.
        public func duration(to other: Instant) -> Duration {
            other.offset - offset
        }

        /// Orders by time.
        public static func < (left: Instant, right: Instant) -> Bool {
            left.offset < right.offset
        }
    }

    private struct State: Sendable {
        var now = WireInstant.zero
        var timers = TimerQueue()
        var sleepers: [UInt64: (token: UInt64, continuation: Suspension.Continuation)] =
            [:]
        /// The waits for a number of sleepers.
        var watchers: [UInt64: (count: Int, continuation: Suspension.Continuation)] = [:]
        var lastIdentifier: UInt64 = 0

        mutating func makeIdentifier() -> UInt64 {
            lastIdentifier += 1
            return lastIdentifier
        }
    }

    private let state = Locked(State())

    /// A clock that stands at zero.
    public init() {}

    /// The present.
    public var now: Instant {
        Instant(offset: .nanoseconds(state.withLock { $0.now.nanoseconds }))
    }

    /// One nanosecond.
    public var minimumResolution: Duration { .nanoseconds(1) }

    /// The number of tasks that sleep by this clock.
    public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Moves the clock on; tasks whose time has come are woken, in the order of their times.
    public func advance(by duration: Duration) {
        let target = state.withLock { $0.now.advanced(by: max(duration, .zero)) }
        while true {
            let action = state.withLock { state -> (@Sendable () -> Void)? in
                guard let deadline = state.timers.nextDeadline, deadline <= target else {
                    // Another task may have moved it further on meanwhile: time never runs backwards.
                    state.now = max(state.now, target)
                    return nil
                }
                state.now = max(state.now, deadline)
                return state.timers.takeDue(at: state.now)
            }
            guard let action else { return }
            action()
        }
    }

    /// Sleeps until the clock has been moved that far.
    /// - Throws: `CancellationError`.
    public func sleep(until deadline: Instant, tolerance: Duration? = nil) async throws {
        let identifier = state.withLock { $0.makeIdentifier() }
        await Suspension.wait(for: "the time of a manual clock") { continuation in
            let watchers = state.withLock { state -> [Suspension.Continuation]? in
                let due = WireInstant(nanoseconds: deadline.offset.wireNanoseconds)
                guard due > state.now, !Task.isCancelled else { return nil }
                let token = state.timers.add(at: due) { [self] in wake(identifier) }
                state.sleepers[identifier] = (token, continuation)
                let count = state.sleepers.count
                let content = state.watchers.filter { $0.value.count <= count }
                for identifier in content.keys { state.watchers[identifier] = nil }
                return content.valuesInKeyOrder.map(\.continuation)
            }
            guard let watchers else { return continuation.resume() }
            for watcher in watchers { watcher.resume() }
        } onCancel: {
            wake(identifier)
        }
        try Task.checkCancellation()
    }

    private func wake(_ identifier: UInt64) {
        let sleeper = state.withLock { state in
            let sleeper = state.sleepers.removeValue(forKey: identifier)
            if let sleeper { state.timers.cancel(sleeper.token) }
            return sleeper
        }
        sleeper?.continuation.resume()
    }

    /// Waits until so many tasks sleep by this clock, or until the waiting task is cancelled, as a test is whose time is up.
    public func waitForSleepers(_ count: Int = 1) async {
        let identifier = state.withLock { $0.makeIdentifier() }
        await Suspension.wait(for: "tasks that sleep by a manual clock") { continuation in
            let mustWait = state.withLock { state in
                guard state.sleepers.count < count, !Task.isCancelled else { return false }
                state.watchers[identifier] = (count, continuation)
                return true
            }
            if !mustWait { continuation.resume() }
        } onCancel: {
            state.withLock { $0.watchers.removeValue(forKey: identifier) }?.continuation.resume()
        }
    }

    // MARK: Timers of a link

    private func scheduleLinkTimer(
        at deadline: WireInstant,
        _ action: @escaping @Sendable () -> Void
    ) -> UInt64 {
        let (token, isDue) = state.withLock { state in
            (state.timers.add(at: deadline, action), deadline <= state.now)
        }
        // As any clock does; not at once, as the caller may hold a lock.
        if isDue { Task { @concurrent in advance(by: .zero) } }
        return token
    }

    private func cancelLinkTimer(_ token: UInt64) {
        state.withLock { _ = $0.timers.cancel(token) }
    }

    /// The number of sleeping tasks, and of timers that links have set.
    package var timerCount: Int { state.withLock { $0.timers.count } }

    /// The clock as a link sees it.
    package var linkTimers: any TimerSource { LinkTimers(clock: self) }

    private final class LinkTimers: TimerSource {
        let clock: ManualClock

        init(clock: ManualClock) {
            self.clock = clock
        }

        var now: WireInstant { clock.state.withLock { $0.now } }

        func scheduleTimer(
            at deadline: WireInstant,
            _ action: @escaping @Sendable () -> Void
        ) -> UInt64 {
            clock.scheduleLinkTimer(at: deadline, action)
        }

        func cancelTimer(_ token: UInt64) {
            clock.cancelLinkTimer(token)
        }
    }
}

extension ManualClock {
    /// Moves the clock on in steps, until a condition holds.
    ///
    /// Between the steps other tasks run. For code that waits by this clock again and again, as a transport does.
    ///
    /// - Parameters:
    ///   - step: How far the clock moves at once.
    ///   - limit: How far it moves in all.
    ///   - condition: Looked at before each step.
    /// - Throws: `WaybillError` with `timedOut` when the condition does not hold at the limit; `CancellationError`; what
    ///   the condition throws.
    public func advance(
        by step: Duration,
        within limit: Duration = .seconds(3_600),
        until condition: () async throws -> Bool
    ) async throws {
        let end = now.advanced(by: limit)
        while true {
            for _ in 0..<50 {
                if try await condition() { return }
                await Task.yield()
            }
            // Leaves the processor to the threads that are to make it so.
            try await Task.sleep(for: .milliseconds(1))
            if try await condition() { return }
            guard now < end else {
                throw WaybillError(.timedOut, "not so within \(limit) of the manual clock")
            }
            advance(by: step)
        }
    }
}
