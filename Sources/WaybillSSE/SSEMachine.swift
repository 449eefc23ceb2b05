package import Waybill
import WaybillSession
package import WireCore

/// The life of one event stream: when it is asked for, when it waits, and when it is over.
///
/// A value that decides. Its owner, ``SSEStream``, tells it what has happened and carries out what it answers.
///
/// | state | what moves it on |
/// | --- | --- |
/// | idle | ``next(at:)`` → connecting, or paused |
/// | connecting | ``connected()`` → requesting; ``pause()`` → pausing; a failed attempt → waiting, closed |
/// | pausing | ``connected()`` → ending; ``resume()`` → connecting; the end of the attempt → paused |
/// | requesting | ``opened(at:)`` → open; ``disconnected()`` → connecting; a failed attempt → waiting, closed |
/// | open | its end → waiting, closed |
/// | ending | the end of the attempt → connecting, paused |
/// | waiting | its deadline, ``retryNow()``, ``restart()`` → connecting; ``pause()`` → paused |
/// | paused | ``resume()`` → connecting; its deadline → closed |
/// | closing | the end of the attempt → closed |
/// | closed | nothing |
///
/// ``pause()`` and ``restart()`` move a stream that is requesting or open to ending. ``close(_:)`` moves any state to
/// closing or closed.
package struct SSEMachine: Sendable {
    package enum State: Sendable {
        case idle(isPaused: Bool)
        /// An attempt is under way without a connection: credentials, interceptors, the way to a host.
        case connecting(attempt: Int)
        /// As connecting, during a pause: a connection that is made is dropped.
        case pausing(attempt: Int)
        /// The request has left. It is held when the app holds the server back, so that the answer may be read late.
        case requesting(attempt: Int, isHeld: Bool)
        /// The server streams events.
        case open(hasEvents: Bool)
        /// This side has closed the connection; the attempt is not over yet.
        case ending(attempt: Int, wasOpen: Bool, Sequel)
        case waiting(Wait)
        /// Until ``resume()``, or until the deadline where a call waits for the opening.
        case paused(attempt: Int, until: WireInstant?)
        /// The app has ended the stream; the attempt is not over yet.
        case closing(Ending)
        case closed(Ending)
    }

    /// What follows the end of an attempt that this side has ended.
    package enum Sequel: Sendable {
        case restart, pause
        /// The pause was over before the attempt was.
        case resume
    }

    /// A wait between two attempts.
    package struct Wait: Sendable {
        package let delay: Duration
        package let until: WireInstant
        /// The attempt that follows.
        package let attempt: Int
        package let cause: WaybillError
    }

    /// How a stream has ended.
    package struct Ending: Sendable {
        /// The error of the messages; nil for an end without one.
        package let error: WaybillError?
        /// The error of the call that waits for the opening.
        package let opening: WaybillError

        package init(_ error: WaybillError?, opening: WaybillError) {
            self.error = error
            self.opening = error ?? opening
        }
    }

    /// What the task of the stream does next.
    package enum Step: Sendable {
        /// Makes an attempt, and tells before that the stream was paused if it was.
        case attempt(Int, wasPaused: Bool)
        /// Sleeps until ``next(at:)`` is to be called.
        case wait(Wait)
        case pause(until: WireInstant?)
        case finish(Ending)

        var isLast: Bool { if case .finish = self { true } else { false } }
    }

    /// What follows from an event outside the task.
    package enum Action: Sendable {
        case none
        case closeConnection
        /// Closes the connection and cancels the attempt.
        case cancel
        /// Wakes the task, which calls ``next(at:)``.
        case wake
    }

    /// The first opening of the stream.
    private enum Opening: Sendable {
        /// A call waits for it: the first failure is its error, and a pause may last this long.
        case awaited(within: Duration)
        case unattended
        case done
    }

    package private(set) var state: State
    private var opening: Opening
    /// The reconnection time that the server has set; nil before.
    package private(set) var serverTime: Duration?
    private let policy: ReconnectionPolicy
    private var schedule: ReconnectionSchedule
    /// The least wait after a connection without an event: 100 milliseconds.
    private static let leastWait = Duration.milliseconds(100)

    /// - Parameters:
    ///   - policy: Whether and when a stream is asked for again.
    ///   - isPaused: Whether the app wants no connections at present.
    ///   - timeLimit: How long a pause may keep the call that waits for the opening; nil when no call waits.
    package init(_ policy: ReconnectionPolicy, isPaused: Bool, timeLimit: Duration?) {
        self.policy = policy
        schedule = ReconnectionSchedule(policy)
        state = .idle(isPaused: isPaused)
        opening = timeLimit.map { .awaited(within: $0) } ?? .unattended
    }

    /// Whether the stream has been open.
    package var isReconnection: Bool { if case .done = opening { true } else { false } }

    /// Whether no call waits for the stream to open.
    package var isUnattended: Bool { if case .awaited = opening { false } else { true } }

    /// Whether the server streams, or has until this side closed the connection.
    package var isOpen: Bool {
        switch state {
        case .open, .ending(_, wasOpen: true, _): true
        default: false
        }
    }

    /// Whether observers of attempts hear of the end of this one: not when this side has ended it before it was open.
    package var tellsEnd: Bool {
        switch state {
        case .connecting, .requesting, .open: true
        case .ending(_, let wasOpen, _): wasOpen
        case .idle, .pausing, .waiting, .paused, .closing, .closed: false
        }
    }

    // MARK: The task

    /// What the task does, at its start and after a sleep.
    package mutating func next(at now: WireInstant) -> Step {
        switch state {
        case .idle(isPaused: true): return pause(before: 1, at: now)
        case .idle(isPaused: false): return attempt(1)
        case .connecting(let attempt), .pausing(let attempt), .requesting(let attempt, _),
            .ending(let attempt, _, _):
            return .attempt(attempt, wasPaused: false)
        case .open: return .attempt(1, wasPaused: false)
        case .waiting(let wait): return .wait(wait)
        case .paused(_, let until): return .pause(until: until)
        case .closing(let ending), .closed(let ending):
            state = .closed(ending)
            return .finish(ending)
        }
    }

    /// An attempt is over, and with it the stream that it may have opened.
    package mutating func attemptEnded(
        _ outcome: SSEOutcome,
        at now: WireInstant,
        random: () -> UInt64
    ) -> Step {
        switch state {
        case .connecting(let attempt), .requesting(let attempt, _):
            return wait(after: outcome, before: attempt + 1, at: now, random)
        case .open(let hasEvents):
            return wait(after: outcome, before: 1, hasEvents: hasEvents, at: now, random)
        case .pausing(let attempt), .ending(let attempt, _, .pause):
            return pause(before: attempt, at: now)
        case .ending(let attempt, _, .restart): return self.attempt(attempt)
        case .ending(let attempt, _, .resume): return self.attempt(attempt, wasPaused: true)
        case .idle, .waiting, .paused, .closing, .closed: return next(at: now)
        }
    }

    private mutating func attempt(_ number: Int, wasPaused: Bool = false) -> Step {
        state = .connecting(attempt: number)
        return .attempt(number, wasPaused: wasPaused)
    }

    private mutating func pause(before attempt: Int, at now: WireInstant) -> Step {
        var until: WireInstant?
        if case .awaited(let limit) = opening { until = now.advanced(by: limit) }
        state = .paused(attempt: attempt, until: until)
        return .pause(until: until)
    }

    private mutating func wait(
        after outcome: SSEOutcome,
        before attempt: Int,
        hasEvents: Bool = false,
        at now: WireInstant,
        _ random: () -> UInt64
    ) -> Step {
        let cause = outcome.error ?? WaybillError(.connectionLost, "the stream has ended")
        // A stream that has brought an event was healthy, however soon it ended.
        if hasEvents { schedule.restart() }
        // The schedule decides on a fault of TLS: a service that has accepted before may be changing its certificate.
        let isFinal = outcome.isFinal && (outcome.isOwn || cause.code != .tls)
        guard !isFinal, isUnattended,
            let drawn = schedule.delay(after: cause, at: now, random: random)
        else {
            let ending = Ending(outcome.error, opening: Self.noStream)
            state = .closed(ending)
            return .finish(ending)
        }
        // The server may ask for a longer wait, not for a shorter one.
        let asked = max(serverTime ?? .zero, outcome.retryAfter ?? .zero)
        let least = hasEvents ? .zero : Self.leastWait
        let delay = max(drawn, min(asked, policy.maximumServerDelay), least)
        let until = now.advanced(by: delay)
        let wait = Wait(delay: delay, until: until, attempt: attempt, cause: cause)
        state = .waiting(wait)
        return .wait(wait)
    }

    // MARK: The connection

    /// A connection is made.
    /// - Returns: Whether the request is to be sent; false for a connection that is to be closed.
    package mutating func connected() -> Bool {
        switch state {
        case .connecting(let attempt):
            state = .requesting(attempt: attempt, isHeld: false)
            return true
        case .pausing(let attempt):
            state = .ending(attempt: attempt, wasOpen: false, .pause)
            return false
        default: return false
        }
    }

    /// The app holds the server back.
    package mutating func held() {
        guard case .requesting(let attempt, _) = state else { return }
        state = .requesting(attempt: attempt, isHeld: true)
    }

    /// The server has begun to stream.
    /// - Returns: Whether the stream is open; false if this side has ended it.
    package mutating func opened(at now: WireInstant) -> Bool {
        switch state {
        case .requesting: state = .open(hasEvents: false)
        case .ending(_, wasOpen: false, let sequel):
            state = .ending(attempt: 1, wasOpen: true, sequel)
        default: return false
        }
        schedule.noteConnected(at: now)
        opening = .done
        return true
    }

    /// Something has come over the stream.
    ///
    /// - Parameters:
    ///   - hasEvents: Whether there were events.
    ///   - serverTime: The reconnection time, if the server has set one.
    package mutating func received(hasEvents: Bool, serverTime: Duration?) {
        if let serverTime { self.serverTime = serverTime }
        if hasEvents, case .open = state { state = .open(hasEvents: true) }
    }

    /// The connection is over; another one may follow in the same attempt.
    /// - Returns: Whether the server had begun to stream, and whether its answer may have been read late.
    package mutating func disconnected() -> (wasOpen: Bool, wasHeld: Bool) {
        switch state {
        case .requesting(let attempt, let isHeld):
            state = .connecting(attempt: attempt)
            return (false, isHeld)
        case .open: return (true, false)
        case .ending(_, let wasOpen, _): return (wasOpen, false)
        default: return (false, false)
        }
    }

    // MARK: The app

    /// The app wants no connections for a while.
    package mutating func pause() -> Action {
        switch state {
        case .idle: state = .idle(isPaused: true)
        case .connecting(let attempt): state = .pausing(attempt: attempt)
        case .requesting, .open: return end(.pause)
        case .ending(let attempt, let wasOpen, _):
            state = .ending(attempt: attempt, wasOpen: wasOpen, .pause)
        case .waiting(let wait):
            state = .paused(attempt: wait.attempt, until: nil)
            return .wake
        case .pausing, .paused, .closing, .closed: break
        }
        return .none
    }

    /// The app wants connections again.
    package mutating func resume() -> Action {
        switch state {
        case .idle: state = .idle(isPaused: false)
        case .pausing(let attempt): state = .connecting(attempt: attempt)
        case .ending(let attempt, let wasOpen, .pause):
            state = .ending(attempt: attempt, wasOpen: wasOpen, .resume)
        case .paused(let attempt, _):
            state = .connecting(attempt: attempt)
            return .wake
        case .waiting: return retryNow()
        case .connecting, .requesting, .open, .ending, .closing, .closed: break
        }
        return .none
    }

    /// Ends a wait between two attempts.
    package mutating func retryNow() -> Action {
        guard case .waiting(let wait) = state else { return .none }
        state = .connecting(attempt: wait.attempt)
        return .wake
    }

    /// The app asks for the stream again at once.
    package mutating func restart() -> Action {
        switch state {
        case .requesting, .open: return end(.restart)
        case .ending(let attempt, let wasOpen, .resume):
            state = .ending(attempt: attempt, wasOpen: wasOpen, .restart)
            return .none
        case .waiting: return retryNow()
        default: return .none
        }
    }

    private mutating func end(_ sequel: Sequel) -> Action {
        switch state {
        case .requesting(let attempt, _):
            state = .ending(attempt: attempt, wasOpen: false, sequel)
        default: state = .ending(attempt: 1, wasOpen: true, sequel)
        }
        return .closeConnection
    }

    /// The app ends the stream; the first call counts.
    package mutating func close(_ ending: Ending) -> Action {
        switch state {
        case .idle:
            state = .closing(ending)
            return .none
        case .connecting, .pausing, .requesting, .open, .ending:
            state = .closing(ending)
            return .cancel
        case .waiting, .paused:
            state = .closed(ending)
            return .wake
        case .closing, .closed: return .none
        }
    }

    // MARK: Time

    /// The time has come that a wait or a pause had as its end.
    package mutating func deadline(at now: WireInstant) -> Action {
        switch state {
        case .waiting(let wait) where wait.until <= now: return retryNow()
        case .paused(_, let until?) where until <= now:
            state = .closed(Ending(Self.paused, opening: Self.paused))
            return .wake
        default: return .none
        }
    }
}

extension SSEMachine {
    /// The error of a stream that is paused for longer than the call for it waits.
    package static let paused = WaybillError(.notConnected, "the connection is paused")

    /// The error of an opening that this side ends before the server has begun to stream.
    static let interrupted = WaybillError(
        .notConnected,
        "disconnected while the stream was asked for"
    )

    /// The error of an opening when the server has nothing to stream (HTML Standard, 9.2.2).
    static let noStream = WaybillError(.rejected, "the server has no stream", peerReason: "204")
}
