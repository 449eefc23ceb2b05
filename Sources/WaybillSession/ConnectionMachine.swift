public import Waybill
public import WireCore

/// Decides the life of a transport's connections: a value with one answer to each event in each state.
///
/// | state | requests | events that end the state |
/// | --- | --- | --- |
/// | idle | one connects, unless the app has disconnected | a request, an explicit connect → connecting |
/// | connecting | wait | the peer accepts → connected; failure → waiting, paused or idle |
/// | connected | go over the connection | loss → waiting, or idle; pause, disconnect → closing |
/// | waiting | wait, or are queued | the deadline → connecting; pause → paused |
/// | paused | as in waiting | resume → waiting, without a delay |
/// | closing | go over the connection, which may refuse them | its end → paused, waiting or idle |
/// | stopping | wait, and fail | the attempt has cleaned up → idle |
/// | shut down | fail | nothing |
///
/// A subscription that starts offline leads from idle to waiting, or during a pause to paused. Disconnect leads from
/// connecting, waiting and paused to stopping. Shutting down ends every state.
///
/// The attempts that follow one demand, or one loss, are a series, which has a number. It lasts until a peer accepts,
/// or until the policy gives up.
@usableFromInline
package struct ConnectionMachine<Connection: AnyObject & Sendable>: Sendable {
    /// The state of the connection.
    @usableFromInline
    package enum State: Sendable {
        case idle(ConnectionRest)
        case connecting(ConnectionAttempt, then: ConnectionAim)
        case connected(Connection)
        /// The next attempt starts at a time; nil for at once.
        case waiting(ConnectionAttempt, until: WireInstant?)
        case paused(ConnectionAttempt)
        case closing(Connection, ConnectionClosing)
        /// An attempt is being stopped. The reason is the error of calls that wait for it.
        case stopping(ConnectionAttempt, WaybillError)
        case shutDown
    }

    package typealias Step = ConnectionStep<Connection>

    @usableFromInline package private(set) var state = State.idle(.ready)
    private let policy: ReconnectionPolicy
    private var schedule: ReconnectionSchedule
    private var lastSeries: UInt64 = 0

    package init(_ policy: ReconnectionPolicy) {
        self.policy = policy
        schedule = ReconnectionSchedule(policy)
    }

    // MARK: Questions

    /// The current attempt, or the next one.
    package var attempt: ConnectionAttempt? {
        switch state {
        case .connecting(let attempt, _), .waiting(let attempt, _), .paused(let attempt),
            .stopping(let attempt, _):
            attempt
        case .idle, .connected, .closing, .shutDown: nil
        }
    }

    /// Whether a connection is made again after a loss, or made for a subscription.
    package var isReturning: Bool { attempt?.isLasting ?? false }

    /// Whether there is a connection, or one follows without a request.
    package var isAlive: Bool {
        switch state {
        case .connected, .closing: true
        case .connecting, .waiting, .paused, .stopping: isReturning
        case .idle, .shutDown: false
        }
    }

    /// The error of a request whose wait for a connection has timed out.
    package var absence: WaybillError {
        WaybillError(
            .notConnected,
            attempt?.origin == .stream
                ? "there is no connection yet" : "the connection was lost and is not back yet",
            peerReason: attempt?.failure?.peerReason,
            underlying: attempt?.failure
        )
    }

    /// The error of an attempt that ended without its own error.
    package var stopReason: WaybillError {
        switch state {
        case .stopping(_, let reason): reason
        case .shutDown: .shutDown
        case .idle, .connecting, .connected, .waiting, .paused, .closing:
            WaybillError(.notConnected, "the attempt to connect was cancelled")
        }
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
        case .idle: return beginOnDemand()
        case .connecting(let attempt, _) where attempt.isLasting:
            state = .connecting(attempt, then: .stay)
            return Step(action: .join(isLimited: true))
        case .stopping(let attempt, _) where attempt.isLasting:
            return Step(action: .join(isLimited: true))
        case .connecting, .stopping: throw .alreadyConnected
        case .waiting(let attempt, _), .paused(let attempt):
            state = .waiting(attempt, until: nil)
            return Step(action: .wake)
        }
    }

    /// A request needs a connection.
    ///
    /// - Parameter connects: Whether the request makes one if there is none.
    /// - Returns: What follows.
    /// - Throws: `shutDown`; `notConnected` if the request must not connect.
    package mutating func request(connects: Bool) throws(WaybillError) -> Step {
        switch state {
        case .shutDown: throw .shutDown
        case .idle where !connects: throw .noConnection
        case .idle(.left): throw .disconnectedByApp
        case .idle: return beginOnDemand()
        case .connected(let connection), .closing(let connection, _):
            return Step(action: .use(connection))
        case .connecting(let attempt, _), .waiting(let attempt, _), .paused(let attempt),
            .stopping(let attempt, _):
            return Step(action: .join(isLimited: attempt.isLasting))
        }
    }

    /// A subscription that starts offline needs a connection, and does not wait for it.
    package mutating func stream() -> Step {
        switch state {
        case .connecting(var attempt, let aim):
            attempt.isWantedByStream = true
            state = .connecting(attempt, then: aim)
        case .idle(.ready), .idle(.paused):
            let isPaused = if case .idle(.paused) = state { true } else { false }
            schedule = ReconnectionSchedule(policy)
            let cause = WaybillError(.notConnected, "there is no connection yet")
            let attempt = makeAttempt(.stream, after: cause)
            state = isPaused ? .paused(attempt) : .waiting(attempt, until: nil)
            return Step(action: .begin)
        case .idle(.left), .connected, .waiting, .paused, .closing, .stopping, .shutDown: break
        }
        return Step()
    }

    private mutating func beginOnDemand() -> Step {
        schedule = ReconnectionSchedule(policy)
        var attempt = makeAttempt(.demand)
        attempt.number = 1
        state = .connecting(attempt, then: .stay)
        return Step(changes: [.connecting(attempt: 1)], action: .begin)
    }

    private mutating func makeAttempt(_ origin: SeriesOrigin, after cause: WaybillError? = nil)
        -> ConnectionAttempt
    {
        lastSeries += 1
        return ConnectionAttempt(series: lastSeries, origin: origin, number: 0, failure: cause)
    }

    // MARK: A series of attempts

    /// A series needs its next step.
    package mutating func turn(of series: UInt64, at now: WireInstant) -> (SeriesTurn, Step) {
        guard let attempt, attempt.series == series else { return (.end, Step()) }
        switch state {
        case .connecting: return (.open(attempt.number), Step())
        case .waiting(var attempt, let time):
            if let time, time > now { return (.wait(time), Step()) }
            attempt.number += 1
            state = .connecting(attempt, then: .stay)
            return (.open(attempt.number), Step(changes: [.connecting(attempt: attempt.number)]))
        case .paused: return (.wait(nil), Step())
        case .idle, .connected, .closing, .stopping, .shutDown: return (.end, Step())
        }
    }

    /// A series has opened a connection.
    ///
    /// An end that was noted before belonged to another connection.
    package mutating func opened(by series: UInt64) {
        guard case .connecting(var attempt, let aim) = state, attempt.series == series else {
            return
        }
        attempt.earlyEnd = nil
        state = .connecting(attempt, then: aim)
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
        guard case .connecting(let attempt, let aim) = state, attempt.series == series else {
            return nil
        }
        schedule.noteConnected(at: now)
        state = aim == .pause ? .closing(connection, .forPause) : .connected(connection)
        var step = Step(changes: [.connected])
        if aim == .pause { step.action = .close(connection) }
        // A peer that accepts and closes at once may be faster than this series.
        guard let end = attempt.earlyEnd else { return step }
        let next = ended(connection, of: series, end.cause, at: now, random: random)
        step.changes += next.changes
        step.action = next.action
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
        let failure = cause ?? stopReason
        guard let attempt, attempt.series == series else { return Step(failure: failure) }
        switch state {
        case .connecting(let attempt, let aim):
            if attempt.isLasting ? cause != nil : attempt.isWantedByStream {
                let delay =
                    cause.map { schedule.delay(after: $0, at: now, random: random) } ?? .zero
                var next = attempt
                if !attempt.isLasting { next = makeAttempt(.stream) }
                next.failure = failure
                if aim == .pause || delay != nil {
                    let isSame = next.series == series
                    return wait(
                        next,
                        aim == .pause ? nil : delay,
                        from: now,
                        Step(action: isSame ? .goOn : .begin, failure: isSame ? nil : failure)
                    )
                }
            }
            return rest(aim == .pause ? .paused : .ready, cause, failure: failure)
        case .stopping: return rest(.left, cause, failure: failure)
        case .waiting, .paused: return rest(.ready, cause, failure: failure)
        case .idle, .connected, .closing, .shutDown: return Step(failure: failure)
        }
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
        let cause = attempt.failure ?? stopReason
        state = delay.map { .waiting(attempt, until: now.advanced(by: $0)) } ?? .paused(attempt)
        var step = step
        step.changes.append(.waiting(delay, attempt: attempt.number + 1, cause: cause))
        return step
    }

    private mutating func rest(
        _ rest: ConnectionRest,
        _ cause: WaybillError?,
        failure: WaybillError? = nil
    )
        -> Step
    {
        state = .idle(rest)
        return Step(
            changes: [.disconnected(cause: cause)],
            action: .conclude(cause, isForGood: false),
            failure: failure
        )
    }

    // MARK: The end of a connection

    /// A connection is over.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - series: The series that has made it.
    ///   - cause: The cause; nil if this side ended it.
    ///   - now: The time.
    ///   - random: Returns random bits for the length of the wait.
    /// - Returns: What follows.
    package mutating func ended(
        _ connection: Connection,
        of series: UInt64,
        _ cause: WaybillError?,
        at now: WireInstant,
        random: () -> UInt64
    ) -> Step {
        var delay: Duration?
        switch state {
        case .connected(let current) where current === connection:
            delay = cause.flatMap { schedule.delay(after: $0, at: now, random: random) }
            guard delay != nil else { return over(rest(.ready, cause), cause) }
        case .closing(let current, let closing) where current === connection:
            switch closing {
            // Also a loss in the midst of it ends no stream with an error: the app has ended it.
            case .forDisconnect: return over(rest(.left, nil), cause)
            case .forPause: break
            case .forEndedPause:
                delay = cause.map { schedule.delay(after: $0, at: now, random: random) } ?? .zero
                guard delay != nil else { return over(rest(.ready, cause), cause) }
            }
        case .connecting(var attempt, let aim) where attempt.series == series:
            attempt.earlyEnd = ConnectionAttempt.EarlyEnd(cause: cause)
            state = .connecting(attempt, then: aim)
            return Step()
        case .shutDown: return Step(action: .conclude(nil, isForGood: true))
        case .idle, .connecting, .connected, .waiting, .paused, .closing, .stopping: return Step()
        }
        let pause = WaybillError(.notConnected, "the connection is paused")
        let attempt = makeAttempt(.loss, after: cause ?? pause)
        return over(wait(attempt, delay, from: now, Step(action: .begin)), cause)
    }

    private func over(_ step: Step, _ cause: WaybillError?) -> Step {
        var step = step
        step.changes.insert(.ended(cause: cause), at: 0)
        return step
    }

    /// The app disconnects.
    ///
    /// - Parameter reason: The error of calls that wait for an attempt.
    /// - Returns: What follows.
    /// - Throws: `shutDown`.
    package mutating func disconnect(because reason: WaybillError) throws(WaybillError) -> Step {
        switch state {
        case .idle: state = .idle(.left)
        case .connecting(let attempt, _), .waiting(let attempt, _), .paused(let attempt):
            state = .stopping(attempt, reason)
            return Step(action: .stop)
        case .stopping: return Step(action: .stop)
        case .connected(let connection), .closing(let connection, _):
            state = .closing(connection, .forDisconnect)
            return Step(action: .close(connection))
        case .shutDown: throw .shutDown
        }
        return Step()
    }

    /// The transport shuts down.
    package mutating func shutDown() -> Step {
        defer { state = .shutDown }
        switch state {
        case .idle: return Step(action: .conclude(nil, isForGood: true))
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
        case .connecting(let attempt, _): state = .connecting(attempt, then: .pause)
        case .waiting(let attempt, _): state = .paused(attempt)
        case .connected(let connection), .closing(let connection, .forPause),
            .closing(let connection, .forEndedPause):
            state = .closing(connection, .forPause)
            return Step(action: .close(connection))
        case .idle, .paused, .closing, .stopping, .shutDown: break
        }
        return Step()
    }

    /// The pause is over.
    ///
    /// A connection that it has closed is made again at once.
    package mutating func resume() -> Step {
        switch state {
        case .idle(.paused): state = .idle(.ready)
        case .connecting(let attempt, _): state = .connecting(attempt, then: .stay)
        case .closing(let connection, .forPause): state = .closing(connection, .forEndedPause)
        case .waiting(let attempt, _), .paused(let attempt):
            state = .waiting(attempt, until: nil)
            return Step(action: .wake)
        case .idle, .connected, .closing, .stopping, .shutDown: break
        }
        return Step()
    }

    /// A hint says that an attempt may succeed.
    ///
    /// The next attempt starts at once.
    package mutating func retryNow() -> Step {
        guard case .waiting(let attempt, _) = state else { return Step() }
        state = .waiting(attempt, until: nil)
        return Step(action: .wake)
    }
}
