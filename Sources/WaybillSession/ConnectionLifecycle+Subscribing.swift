package import Waybill
import WaybillLink
import WireCore

extension ConnectionLifecycle {
    /// Subscribes: over the connection that there is or that is made for it, or, where that is wanted, with the next one.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - options: The options of its command.
    ///   - later: Has the next connection subscribe; nil when there is one already.
    ///   - greeting: The first words, should a connection be made for it.
    ///   - connection: Makes a connection if need be.
    ///   - now: Subscribes over it.
    /// - Returns: The messages.
    /// - Throws: `shutDown`, and what `session` and `now` throw.
    package func subscribe(
        _ request: Request,
        _ options: SubscribeOptions,
        later: () -> Messages<Message>?,
        greeting: () throws(WaybillError) -> Connection.Greeting,
        connection: () async throws -> Connection,
        now: (Connection) async throws -> Messages<Message>
    ) async throws -> Messages<Message> {
        guard options.startsOffline else { return try await now(connection()) }
        while true {
            if connected == nil, let messages = later() {
                // Nobody would end it any more.
                if isShutDown { throw WaybillError.shutDown.about(request) }
                if settings.connectsOnDemand { connectPatiently(try greeting()) }
                return messages
            }
            let present: Connection
            do { present = try await connection() } catch let error as WaybillError
                where error.isRetryable && !isShutDown
            {
                // There was to be one, and it has come to nothing.
                try Task.checkCancellation()
                continue
            }
            do { return try await now(present) } catch let error as WaybillError
                where [.connectionLost, .notConnected].contains(error.code) && !isShutDown
            {
                // It came upon a connection that was just ending.
                try await present.over()
            }
        }
    }

    /// Connects by the policy that holds for connections that were lost, unless one is there or on its way.
    private func connectPatiently(_ greeting: Connection.Greeting) {
        let attempt = phase.withLock { phase -> ConnectionAttempt<Connection>? in
            if case .connecting(let attempt) = phase { attempt.isWanted = true }
            guard case .idle = phase, !memory.withLock({ $0.isLeft }) else { return nil }
            let cause = WaybillError(.notConnected, "there is no connection yet")
            let attempt = ConnectionAttempt<Connection>(after: cause, isFirst: true)
            phase = .connecting(attempt)
            memory.withLock { memory in
                memory.greeting = (greeting, settings.connectTimeout)
                memory.schedule = ReconnectionSchedule(settings.reconnection)
            }
            return attempt
        }
        if let attempt { carryOut(.reconnect(attempt, nil)) }
    }

    /// Goes on after a first attempt that has failed, where a stream wants a connection all the same; called with the
    /// lock of the phase held.
    /// - Returns: What is to be done; nil when there is no use in it.
    func goOn(
        _ phase: inout Phase,
        after attempt: ConnectionAttempt<Connection>,
        _ cause: WaybillError?,
        at now: WireInstant
    ) -> Next? {
        guard attempt.isWanted, !attempt.isReconnection, !attempt.isStopped else { return nil }
        // Without a cause, those who have waited for it have gone.
        let reason = cause ?? attempt.stopReason
        let (isPaused, delay) = memory.withLock { memory -> (Bool, Duration?) in
            if memory.isPaused { return (true, nil) }
            guard let cause else { return (false, .zero) }
            let random = environment.random
            return (false, memory.schedule.delay(after: cause, at: now, random: random))
        }
        guard isPaused || delay != nil else { return nil }
        let next = ConnectionAttempt<Connection>(after: reason, isFirst: true)
        phase = .connecting(next)
        report(.waiting(until: Self.instant(after: delay), cause: reason), next)
        return .reconnect(next, delay.map { now.advanced(by: $0) })
    }

    private var isShutDown: Bool {
        if case .shutDown = phase.withLock({ $0 }) { true } else { false }
    }
}
