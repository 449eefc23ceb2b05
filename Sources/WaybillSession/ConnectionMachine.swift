package import Waybill
package import WireCore

/// Decides the life of a transport's connections: a value with one answer to each event in each state.
///
/// | state | requests | events that end the state |
/// | --- | --- | --- |
/// | idle | one connects, unless the app has disconnected | a request, an explicit connect → connecting |
/// | connecting | wait | the peer accepts → connected, or in a pause closing; failure → waiting, paused or concluding |
/// | connected | go over the connection | its end → waiting or concluding; pause, disconnect → closing |
/// | waiting | wait, or are queued | the deadline → connecting; pause → paused; cancellation → concluding |
/// | paused | as in waiting | resume, an explicit connect → waiting, without a delay; cancellation → concluding |
/// | closing | go over the connection, which may refuse them | its end → paused, waiting or concluding |
/// | stopping | wait, and fail; an explicit connect waits for idle | the attempt has cleaned up → concluding |
/// | concluding | wait for idle, unless the app has disconnected | the shell has ended streams and calls → idle |
/// | shut down | fail | nothing |
///
/// A subscription that starts offline leads from idle to waiting, or during a pause to paused. Disconnect leads from
/// connecting, waiting and paused to stopping. An explicit connect, resume and a hint remove the delay of waiting. A
/// connection that has ended before the machine hears of its acceptance is connected for no time. Shutting down ends
/// every state.
///
/// The attempts that follow one demand, or one loss, are a series, which has a number. It lasts until a peer accepts,
/// or until the policy gives up. After that, a request makes at most one attempt in each interval of the policy: a
/// series of a request that comes too early begins in waiting.
@usableFromInline
package struct ConnectionMachine<Connection: AnyObject & Sendable>: Sendable {
    package typealias Step = ConnectionStep<Connection>

    @usableFromInline package private(set) var state = ConnectionMachineState<Connection>.idle(
        .ready
    )
    private var schedule: ReconnectionSchedule
    private var lastSeries: UInt64 = 0
    /// The earliest time of an attempt for a request, and the error for which requests have to wait.
    package private(set) var hold: (until: WireInstant, cause: WaybillError)? {
        get { rare?.value.hold }
        set { changeRare { $0.hold = newValue } }
    }
    /// What is known of the credentials, which decides nothing about the life of connections but its end.
    package var trial: CredentialTrial {
        get { rare?.value.trial ?? CredentialTrial() }
        set { changeRare { $0.trial = newValue } }
    }

    private struct Rare: Sendable {
        var hold: (until: WireInstant, cause: WaybillError)?
        var trial = CredentialTrial()
    }
    // Out of line, because most connections never have any of it.
    private var rare: Shared<Rare>?

    private mutating func changeRare(_ body: (inout Rare) -> Void) {
        var changed = rare?.value ?? Rare()
        body(&changed)
        rare = changed.hold == nil && changed.trial.isUnused ? nil : Shared(changed)
    }

    package init(_ policy: ReconnectionPolicy) {
        schedule = ReconnectionSchedule(policy)
    }

    // MARK: A connection is needed

    /// The app connects.
    ///
    /// - Returns: What follows.
    /// - Throws: `shutDown`; `rejected` if there is a connection, or if another connect is under way.
    package mutating func connect() throws(WaybillError) -> Step {
        switch state {
        case .shutDown: throw .shutDown
        case .connected, .closing: throw .alreadyConnected
        case .idle:
            schedule.restart()
            return beginOnDemand()
        case .connecting(let attempt, _) where attempt.isLasting:
            state = .connecting(attempt, then: .ready)
            return Step(action: .join(isLimited: true))
        case .connecting: throw .alreadyConnected
        case .stopping, .concluding: return Step(action: .postpone)
        case .waiting(let attempt, _), .paused(let attempt):
            // The app may have other credentials.
            trial = CredentialTrial()
            state = .waiting(attempt, until: nil)
            return Step(action: .wake)
        }
    }

    /// A request needs a connection.
    ///
    /// - Parameters:
    ///   - connects: Whether the request makes one if there is none.
    ///   - limit: How long the request can wait until an attempt begins.
    ///   - now: The time.
    /// - Returns: What follows; for a limited wait with the error of a request whose limit comes first.
    /// - Throws: `shutDown`; `notConnected` if the request must not connect.
    package mutating func request(
        connects: Bool,
        within limit: Duration,
        at now: WireInstant
    ) throws(WaybillError) -> Step {
        switch state {
        case .shutDown: throw .shutDown
        case .idle where !connects, .concluding where !connects: throw .noConnection
        case .idle(.disconnected), .concluding(.disconnected): throw .disconnectedByApp
        case .idle:
            schedule.restart(keepsWaits: true)
            guard let hold, hold.until > now else { return beginOnDemand() }
            let attempt = makeAttempt(.demand, after: hold.cause)
            let step = wait(attempt, now.duration(to: hold.until), from: now, Step())
            return step.joining(attempt, until: hold.until, within: limit, at: now, isNew: true)
        case .concluding: return Step(action: .postpone)
        case .connected(let connection), .closing(let connection, _):
            return Step(action: .use(connection))
        case .waiting(let attempt, let time) where !attempt.isLasting:
            return Step().joining(attempt, until: time ?? now, within: limit, at: now)
        case .paused: return Step(action: .join(isLimited: true))
        case .connecting(let attempt, _), .waiting(let attempt, _), .stopping(let attempt):
            return Step(action: .join(isLimited: attempt.isLasting))
        }
    }

    /// A subscription that starts offline, or a send that waits for any connection, needs one.
    package mutating func subscribe() -> Step {
        switch state {
        case .connecting(var attempt, let intent):
            attempt.isWantedBySubscription = true
            state = .connecting(attempt, then: intent)
        case .waiting(var attempt, let time) where !attempt.isLasting:
            attempt.isWantedBySubscription = true
            state = .waiting(attempt, until: time)
        case .paused(var attempt) where !attempt.isLasting:
            attempt.isWantedBySubscription = true
            state = .paused(attempt)
        case .idle(let intent) where intent != .disconnected:
            schedule.restart(keepsWaits: true)
            let cause = WaybillError(.notConnected, "there is no connection yet")
            let attempt = makeAttempt(.subscription, after: cause)
            state = intent == .paused ? .paused(attempt) : .waiting(attempt, until: hold?.until)
            return Step(action: .begin(isLimited: false))
        case .concluding: return Step(action: .postpone)
        case .idle, .connected, .waiting, .paused, .closing, .stopping, .shutDown: break
        }
        return Step()
    }

    private mutating func beginOnDemand() -> Step {
        hold = nil
        var attempt = makeAttempt(.demand)
        attempt.number = 1
        state = .connecting(attempt, then: .ready)
        return Step(changes: [.connecting(attempt: 1)], action: .begin(isLimited: false))
    }

    private mutating func makeAttempt(_ origin: SeriesOrigin, after cause: WaybillError? = nil)
        -> ConnectionAttempt
    {
        lastSeries += 1
        return ConnectionAttempt(series: lastSeries, origin: origin, number: 0, failure: cause)
    }

    // MARK: A series of attempts

    /// A series needs its next step.
    ///
    /// - Returns: What follows; no action if the series is over.
    package mutating func turn(of series: UInt64, at now: WireInstant) -> Step {
        guard let attempt = state.attempt, attempt.series == series else { return Step() }
        switch state {
        case .connecting: return Step(action: .open(attempt.number))
        case .waiting(var attempt, let time):
            if let time, time > now { return Step(action: .wait(until: time)) }
            attempt.number += 1
            state = .connecting(attempt, then: .ready)
            let number = attempt.number
            return Step(changes: [.connecting(attempt: number)], action: .open(number))
        case .paused: return Step(action: .wait(until: nil))
        case .idle, .connected, .closing, .stopping, .concluding, .shutDown: return Step()
        }
    }

    /// A series opens a connection.
    ///
    /// An end that was noted before belonged to another connection.
    package mutating func opening(by series: UInt64) {
        guard case .connecting(var attempt, let intent) = state, attempt.series == series else {
            return
        }
        attempt.earlyEnd = nil
        attempt.hasDialed = true
        state = .connecting(attempt, then: intent)
    }

    /// The peer has accepted a connection, and the state of the previous one is restored.
    ///
    /// - Returns: What follows; nil if the series is over, so that the connection has to be closed.
    package mutating func accepted(
        _ connection: Connection,
        by series: UInt64,
        at now: WireInstant,
        random: () -> UInt64
    ) -> Step? {
        guard case .connecting(let attempt, let intent) = state, attempt.series == series else {
            return nil
        }
        schedule.noteConnected(at: now)
        trial.noteAccepted()
        hold = nil
        state = intent == .paused ? .closing(connection, .paused) : .connected(connection)
        var step = Step(changes: [.connected])
        if intent == .paused { step.action = .close(connection) }
        // A peer that accepts and closes at once may be faster than this series.
        guard let end = attempt.earlyEnd else { return step }
        let next = ended(
            connection,
            of: series,
            end.cause,
            hasProgress: end.hasProgress,
            at: now,
            random: random
        )
        step.changes += next.changes
        step.action = next.action
        step.wasHealthy = next.wasHealthy
        return step
    }

    /// An attempt has failed.
    ///
    /// - Parameters:
    ///   - series: Its series.
    ///   - cause: The error; nil if the attempt was cancelled.
    ///   - now: The time.
    ///   - random: Returns random bits for the length of the wait.
    /// - Returns: What follows, with the error of waiting calls unless the series continues.
    package mutating func failed(
        _ series: UInt64,
        _ cause: WaybillError?,
        at now: WireInstant,
        random: () -> UInt64
    ) -> Step {
        let failure = cause ?? state.stopReason
        guard let attempt = state.attempt, attempt.series == series else {
            return Step(failure: failure)
        }
        switch state {
        case .connecting(let attempt, let intent):
            if attempt.isLasting ? cause != nil : attempt.isWantedBySubscription {
                let delay =
                    cause.map { schedule.delay(after: $0, at: now, random: random) } ?? .zero
                if intent == .paused || delay != nil {
                    let delay = intent == .paused ? nil : delay
                    return goOn(after: attempt, failure, delay, from: now)
                }
            }
            if attempt.hasDialed { holdRequests(after: cause, at: now, random) }
            return rest(intent, cause, failure: failure)
        // Whatever has failed meanwhile, the app has ended the attempt.
        case .stopping: return rest(.disconnected, nil, failure: failure)
        // The requests that waited are gone, and the subscription goes on.
        case .waiting(let attempt, let time)
        where attempt.isWantedBySubscription && !attempt.isLasting:
            let delay = time.map { max(now.duration(to: $0), .zero) } ?? .zero
            return goOn(after: attempt, failure, delay, from: now)
        case .paused(let attempt) where attempt.isWantedBySubscription && !attempt.isLasting:
            return goOn(after: attempt, failure, nil, from: now)
        case .waiting: return rest(.ready, cause, failure: failure)
        case .paused: return rest(.paused, cause, failure: failure)
        case .idle, .connected, .closing, .concluding, .shutDown: return Step(failure: failure)
        }
    }

    /// Changes to the wait for the next attempt of a lasting series, which is another one after that of a request.
    private mutating func goOn(
        after attempt: ConnectionAttempt,
        _ failure: WaybillError,
        _ delay: Duration?,
        from now: WireInstant
    ) -> Step {
        var next = attempt.isLasting ? attempt : makeAttempt(.subscription)
        next.failure = failure
        guard !attempt.isLasting else { return wait(next, delay, from: now, Step()) }
        return wait(
            next,
            delay,
            from: now,
            Step(action: .begin(isLimited: false), failure: failure)
        )
    }

    /// Has requests wait for the next interval of the policy, because the peer has ended an attempt or a connection.
    private mutating func holdRequests(
        after cause: WaybillError?,
        at now: WireInstant,
        _ random: () -> UInt64
    ) {
        guard let cause else { return }
        hold = (now.advanced(by: schedule.interval(after: cause, random: random)), cause)
    }

    /// Changes to the wait for the next attempt.
    ///
    /// Without a delay, the wait lasts until the end of the pause.
    private mutating func wait(
        _ attempt: ConnectionAttempt,
        _ delay: Duration?,
        from now: WireInstant,
        _ step: Step
    ) -> Step {
        let cause = attempt.failure ?? state.stopReason
        state = delay.map { .waiting(attempt, until: now.advanced(by: $0)) } ?? .paused(attempt)
        var step = step
        step.changes.append(.waiting(delay, attempt: attempt.number + 1, cause: cause))
        return step
    }

    private mutating func rest(
        _ intent: ConnectionIntent,
        _ cause: WaybillError?,
        failure: WaybillError? = nil
    ) -> Step {
        state = .concluding(intent)
        return Step(
            changes: [.disconnected(cause: cause)],
            action: .conclude(cause, isForGood: false),
            failure: failure
        )
    }

    /// The shell has ended subscriptions and calls.
    package mutating func concluded() {
        trial = CredentialTrial()
        if case .concluding(let intent) = state { state = .idle(intent) }
    }

    // MARK: The end of a connection

    /// A connection is over.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - series: The series that has made it.
    ///   - cause: The cause; nil if this side ended it.
    ///   - hasProgress: Whether the peer has answered more than the greeting.
    ///   - now: The time.
    ///   - random: Returns random bits for the length of the wait.
    /// - Returns: What follows.
    package mutating func ended(
        _ connection: Connection,
        of series: UInt64,
        _ cause: WaybillError?,
        hasProgress: Bool,
        at now: WireInstant,
        random: () -> UInt64
    ) -> Step {
        var delay: Duration?
        var loss = cause
        let wasHealthy = schedule.isHealthy(at: now)
        switch state {
        case .connected(let current) where current === connection:
            loss = trial.judge(cause, after: schedule.life(at: now))
            delay = loss.flatMap {
                schedule.delay(after: $0, hasProgress: hasProgress, at: now, random: random)
            }
            guard delay != nil else {
                holdRequests(after: cause, at: now, random)
                return over(rest(.ready, cause), cause, wasHealthy)
            }
        case .closing(let current, let intent) where current === connection:
            switch intent {
            // Also a loss in the midst of it ends no stream with an error: the app has ended it.
            case .disconnected: return over(rest(.disconnected, nil), cause, wasHealthy)
            case .paused: break
            // The pause is over before it has closed the connection.
            case .ready:
                delay =
                    cause.map {
                        schedule.delay(after: $0, hasProgress: hasProgress, at: now, random: random)
                    } ?? .zero
                guard delay != nil else { return over(rest(.ready, cause), cause, wasHealthy) }
            }
        case .connecting(var attempt, let intent) where attempt.series == series:
            attempt.earlyEnd = ConnectionAttempt.EarlyEnd(cause: cause, hasProgress: hasProgress)
            state = .connecting(attempt, then: intent)
            return Step()
        case .shutDown: return Step(action: .conclude(nil, isForGood: true))
        case .idle, .connecting, .connected, .waiting, .paused, .closing, .stopping, .concluding:
            return Step()
        }
        let attempt = makeAttempt(.loss, after: loss ?? Self.pause)
        return over(
            wait(attempt, delay, from: now, Step(action: .begin(isLimited: false))),
            loss,
            wasHealthy
        )
    }

    private static var pause: WaybillError {
        WaybillError(.notConnected, "the connection is paused")
    }

    private func over(_ step: Step, _ cause: WaybillError?, _ wasHealthy: Bool) -> Step {
        var step = step
        step.wasHealthy = wasHealthy
        step.changes.insert(.ended(cause: cause), at: 0)
        return step
    }

    /// The app disconnects.
    ///
    /// - Returns: What follows.
    /// - Throws: `shutDown`.
    package mutating func disconnect() throws(WaybillError) -> Step {
        switch state {
        case .idle: state = .idle(.disconnected)
        case .concluding: state = .concluding(.disconnected)
        case .connecting(let attempt, _), .waiting(let attempt, _), .paused(let attempt):
            state = .stopping(attempt)
            return Step(action: .stop)
        case .stopping: return Step(action: .stop)
        case .connected(let connection), .closing(let connection, _):
            state = .closing(connection, .disconnected)
            return Step(action: .close(connection))
        case .shutDown: throw .shutDown
        }
        return Step()
    }

    /// The transport shuts down.
    package mutating func shutDown() -> Step {
        defer { state = .shutDown }
        switch state {
        case .idle, .concluding: return Step(action: .conclude(nil, isForGood: true))
        case .connecting, .waiting, .paused, .stopping:
            return Step(changes: [.disconnected(cause: nil)], action: .stop)
        case .connected(let connection), .closing(let connection, _):
            return Step(
                changes: [.disconnected(cause: nil), .ended(cause: nil)],
                action: .close(connection)
            )
        case .shutDown: return Step()
        }
    }

    // MARK: Hints

    /// A pause begins.
    ///
    /// The connection is closed, and a reconnection waits for the end of the pause.
    package mutating func pause() -> Step {
        switch state {
        case .idle(.ready): state = .idle(.paused)
        case .concluding(.ready): state = .concluding(.paused)
        case .connecting(let attempt, _): state = .connecting(attempt, then: .paused)
        case .waiting(let attempt, _):
            state = .paused(attempt)
            let cause = attempt.failure ?? Self.pause
            return Step(changes: [.waiting(nil, attempt: attempt.number + 1, cause: cause)])
        case .connected(let connection), .closing(let connection, .paused),
            .closing(let connection, .ready):
            state = .closing(connection, .paused)
            return Step(action: .close(connection))
        case .idle, .paused, .closing, .stopping, .concluding, .shutDown: break
        }
        return Step()
    }

    /// The pause is over.
    ///
    /// A connection that it has closed is made again at once.
    package mutating func resume() -> Step {
        hold = nil
        switch state {
        case .idle(.paused): state = .idle(.ready)
        case .concluding(.paused): state = .concluding(.ready)
        case .connecting(let attempt, _): state = .connecting(attempt, then: .ready)
        case .closing(let connection, .paused): state = .closing(connection, .ready)
        case .waiting(let attempt, _), .paused(let attempt):
            state = .waiting(attempt, until: nil)
            return Step(action: .wake)
        case .idle, .connected, .closing, .stopping, .concluding, .shutDown: break
        }
        return Step()
    }

    /// A hint says that an attempt may succeed.
    ///
    /// The next attempt starts at once.
    package mutating func retryNow() -> Step {
        hold = nil
        guard case .waiting(let attempt, _) = state else { return Step() }
        state = .waiting(attempt, until: nil)
        return Step(action: .wake)
    }
}
