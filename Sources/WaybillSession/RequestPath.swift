package import Waybill
import WaybillLink
import WireCore

/// Leads each request to the present connection, to the next one, or into the offline queue.
package struct RequestPath<Connection: TransportConnection>: Sendable {
    let lifecycle: ConnectionLifecycle<Connection>

    private var queue: OfflineQueue<Connection> { lifecycle.queue }

    /// Returns the present connection, for a request that needs one and does not make one.
    ///
    /// - Throws: `notConnected`, `shutDown`.
    package func current(for request: Request) throws(WaybillError) -> Connection {
        try current(for: request, orAccepted: nil)
    }

    /// Returns the present connection, for the acknowledgement of a message.
    ///
    /// - Parameters:
    ///   - request: The acknowledgement.
    ///   - accepted: The connection that the server has accepted. Its messages may arrive, and must be acknowledged,
    ///     while its subscriptions are still being restored.
    /// - Returns: The connection.
    /// - Throws: `notConnected`, `shutDown`.
    package func current(
        for request: Request,
        orAccepted accepted: Connection?
    ) throws(WaybillError) -> Connection {
        guard let connection = lifecycle.connected ?? accepted else { throw notConnected(request) }
        return connection
    }

    /// Checks a request that is valid while there is a connection or while one is made.
    ///
    /// - Throws: `notConnected`, `shutDown`.
    package func check(_ request: Request) throws(WaybillError) {
        guard lifecycle.isUnderWay else { throw notConnected(request) }
    }

    func notConnected(_ request: Request) -> WaybillError {
        lifecycle.isShutDown ? .shutDown : WaybillError.noConnection.about(request)
    }

    /// Returns the connection for a request, and makes one if needed.
    ///
    /// Check ``ConnectionLifecycle/connected`` first.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - greeting: The greeting of a connection that is made for the request.
    /// - Returns: A connection that the peer has accepted.
    /// - Throws: The errors of ``ConnectionLifecycle/connect(_:timeout:)`` and of `greeting`; `notConnected` if only an
    ///   explicit connect makes connections.
    package func connection(
        for request: Request,
        greeting: () throws(WaybillError) -> Connection.Greeting
    ) async throws -> Connection {
        let greeting = lifecycle.settings.connectsOnDemand ? try greeting() : nil
        let timeout = lifecycle.settings.connectTimeout
        let limit = min(request.command[.timeout] ?? timeout, timeout)
        let (step, series) = try await lifecycle.ask { state throws(WaybillError) in
            let connects = greeting != nil
            let step = try self.step(of: request, connects: connects, within: limit, &state)
            if case .begin = step.action {
                state.greeting = greeting.map { ($0, timeout) }
            }
            return step
        }
        if case .use(let connection) = step.action { return connection }
        return try await lifecycle.made(by: series, step, within: limit).connection
    }

    private func step(
        of request: Request,
        connects: Bool,
        within limit: Duration,
        _ state: inout ConnectionLifecycle<Connection>.State
    ) throws(WaybillError) -> ConnectionStep<Connection> {
        do throws(WaybillError) {
            let now = lifecycle.clock.now
            return try state.machine.request(connects: connects, within: limit, at: now)
        } catch {
            throw error.code == .shutDown ? error : error.about(request)
        }
    }

    /// Sends a request over a connection.
    ///
    /// If that connection is just ending and nothing was sent, the request goes over the next one.
    ///
    /// - Parameters:
    ///   - isLasting: Whether the request waits for any connection.
    ///   - queued: Puts the request into the queue and returns its result; nil if it may not wait.
    ///   - connection: Returns the connection, and makes one if needed.
    ///   - send: Sends over the connection.
    /// - Returns: The result of `queued` or `send`.
    /// - Throws: The errors of the closures.
    package func sending<Result>(
        isLasting: Bool = false,
        orQueued queued: () async throws -> Result? = { nil },
        connection: () async throws -> Connection,
        over send: (Connection) async throws -> Result
    ) async throws -> Result {
        while true {
            do {
                if let result = try await queued() { return result }
            } catch let error as WaybillError
                where isLasting && error.code == .notConnected && !lifecycle.isShutDown
            {
                // It was handed to a connection that ended before it was sent.
                continue
            }
            let present: Connection
            do { present = try await connection() } catch let error as WaybillError {
                // The connection was there a moment ago.
                if isLasting, error.isRetryable, !lifecycle.isShutDown { continue }
                // Whatever has happened to the connection, the request was not sent.
                throw error.arriving(false)
            }
            do { return try await send(present) } catch let error as WaybillError
                where error.code == .notConnected
            {
                if isLasting {
                    try await present.over()
                } else {
                    try await wait(for: present, after: error)
                }
            }
        }
    }

    /// Waits for the end of a connection that has refused a request before it was sent.
    ///
    /// - Throws: `error` if no connection follows; `shutDown`; `CancellationError`.
    private func wait(for ending: Connection, after error: WaybillError) async throws {
        try await ending.over()
        try checkReturn(after: error)
    }

    /// Checks that another connection follows one that has refused a request before it was sent.
    ///
    /// - Throws: `error` if none follows; `shutDown`.
    package func checkReturn(after error: WaybillError) throws(WaybillError) {
        guard !lifecycle.isAlive else { return }
        guard lifecycle.isShutDown else { throw error }
        throw WaybillError.shutDown.about(topic: error.topic, command: error.command)
    }

    /// Subscribes over a connection, or has the next connection subscribe if the options allow to start offline.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - later: Has the next connection subscribe; nil if there is a connection.
    ///   - greeting: The greeting of a connection that is made for the request.
    ///   - connection: Returns the connection, and makes one if needed.
    ///   - now: Subscribes over the connection.
    /// - Returns: The messages.
    /// - Throws: `shutDown`, and the errors of `later`, `connection` and `now`.
    package func subscribe(
        _ request: Request,
        later: () throws(WaybillError) -> Messages<Message>?,
        greeting: () throws(WaybillError) -> Connection.Greeting,
        connection: () async throws -> Connection,
        now: (Connection) async throws -> Messages<Message>
    ) async throws -> Messages<Message> {
        guard waits(request.command[.waitsForConnection]) else {
            return try await now(connection())
        }
        while true {
            // An earlier subscription's end would otherwise end this one, too.
            try await lifecycle.waitUntilConcluded()
            if lifecycle.connected == nil, let messages = try later() {
                // After the shutdown nothing would end the messages.
                if lifecycle.isShutDown { throw WaybillError.shutDown.about(request) }
                if lifecycle.settings.connectsOnDemand {
                    try await lifecycle.wantConnection(try greeting())
                }
                return messages
            }
            let present: Connection
            do { present = try await connection() } catch let error as WaybillError
                where error.isRetryable && !lifecycle.isShutDown
            {
                // The attempt that was under way has failed.
                try Task.checkCancellation()
                continue
            }
            do { return try await now(present) } catch let error as WaybillError
                where [.connectionLost, .notConnected].contains(error.code) && !lifecycle.isShutDown
            {
                // The connection was just ending.
                try await present.over()
            }
        }
    }

    // MARK: Sends that wait

    /// Whether a request waits for any connection, by its option or by the settings.
    package func waits(_ option: Bool?) -> Bool {
        option ?? lifecycle.settings.waitsForConnection
    }

    /// Whether a send waits for any connection.
    ///
    /// By the settings, sends without an acknowledgement wait only where the queue includes them.
    package func waits(_ command: EntryCommand, isAcknowledged: Bool) -> Bool {
        guard !command.isSet(.sentOnceOnly) else { return false }
        let isIncluded = isAcknowledged || queue.policy.includesUnacknowledged
        return command[.waitsForConnection]
            ?? (isIncluded && lifecycle.settings.waitsForConnection)
    }

    /// Whether a send may wait in the queue now.
    ///
    /// - Parameters:
    ///   - isAcknowledged: Whether the peer will acknowledge the send.
    ///   - isLasting: Whether it waits for any connection.
    /// - Returns: Whether it may.
    package func queues(isAcknowledged: Bool, isLasting: Bool) -> Bool {
        lifecycle.state.withLock { state in
            if isLasting { return state.machine.state.connection == nil }
            return queue.policy.isEnabled
                && (isAcknowledged || queue.policy.includesUnacknowledged)
                && state.machine.state.isReturning
        }
    }

    /// Sends in the order of the calls, when the connection is back.
    ///
    /// If that connection is just ending and nothing was sent, the request waits for the next one.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - timeout: The longest wait for the connection; nil for no limit.
    ///   - greeting: The greeting of a connection that is made for the request, which waits for any connection; nil for a
    ///     request that waits only for one that follows anyway.
    ///   - willSucceed: Called when the answer has come, before the waiting task learns of it.
    ///   - send: Hands the request to a connection, with the call; throws if nothing was sent.
    ///   - withdraw: Called if the task is cancelled after the request was handed over.
    /// - Returns: The peer's answer.
    /// - Throws: `limitExceeded` if the queue is full, `timedOut` after the timeout; the errors of `send` and of
    ///   the call; `CancellationError`.
    package func queued<Answer: Sendable>(
        _ request: Request,
        timeout: Duration?,
        greeting: Connection.Greeting? = nil,
        willSucceed: (@Sendable () -> Void)? = nil,
        send: @escaping @Sendable (Connection, PendingCall<Answer>) throws(WaybillError) -> Void,
        withdraw: @escaping @Sendable (PendingCall<Answer>) -> Void
    ) async throws -> Answer {
        let call = PendingCall<Answer>(willSucceed: willSucceed)
        let number = Locked<UInt64?>(nil)
        let item = OfflineQueue<Connection>.Item(
            topic: request.topic,
            byteCount: request.body.count,
            timeout: timeout,
            isLasting: greeting != nil,
            send: { connection throws(WaybillError) in
                // A call that was withdrawn in the meantime is not sent.
                guard !call.isDone else { return }
                do throws(WaybillError) {
                    try send(connection, call)
                } catch {
                    guard error.code != .notConnected else { throw error }
                    call.fail(error)
                }
            },
            fail: { call.fail($0) }
        )
        var place = Place.conclusion(nil)
        do {
            return try await call.answer(
                sending: { () throws(WaybillError) in
                    place = try enqueue(item, for: request, greeting)
                    switch place {
                    case .connection(let connection):
                        try send(connection, call)
                        place = .queue(nil)
                    case .queue(let waiting):
                        number.withLock { $0 = waiting }
                        if let waiting, call.isDone { _ = queue.withdraw(waiting) }
                    case .conclusion: throw .noConnection
                    }
                },
                withdrawing: { [queue] call in
                    if let place = number.withLock({ $0 }), queue.withdraw(place) { return }
                    withdraw(call)
                }
            )
        } catch let error as WaybillError {
            switch place {
            case .connection(let ending) where error.code == .notConnected:
                if greeting == nil {
                    try await wait(for: ending, after: error.about(request))
                } else {
                    try await ending.over()
                }
            case .conclusion(let conclusion?): try await conclusion.value()
            case .connection, .queue, .conclusion: throw error.about(request)
            }
            return try await queued(
                request,
                timeout: timeout,
                greeting: greeting,
                willSucceed: willSucceed,
                send: send,
                withdraw: withdraw
            )
        }
    }

    /// Where a send goes.
    private enum Place {
        case connection(Connection)
        /// It has this number in the queue; nil for a send that a connection has taken.
        case queue(UInt64?)
        /// Nowhere, before streams and calls are ended.
        case conclusion(Promise<Void>?)
    }

    /// Puts a send into the queue, for the next connection.
    ///
    /// In the same step a connection is begun for a send that waits for any. Otherwise that could fail before the send
    /// is in the queue, and nothing would end its wait.
    ///
    /// - Returns: The connection, if there is one now; otherwise the place in the queue, or what to wait for first.
    /// - Throws: `limitExceeded`; `notConnected` and `shutDown` if no connection follows for it.
    private func enqueue(
        _ item: OfflineQueue<Connection>.Item,
        for request: Request,
        _ greeting: Connection.Greeting?
    ) throws(WaybillError) -> Place {
        var place = Place.conclusion(nil)
        var dropped: [OfflineQueue<Connection>.Item] = []
        _ = try lifecycle.apply { state throws(WaybillError) in
            if let connection = state.machine.state.connection {
                place = .connection(connection)
                return .init()
            }
            switch state.machine.state {
            case _ where !item.isLasting:
                _ = try step(of: request, connects: false, within: .zero, &state)
            case .shutDown: throw .shutDown
            case .concluding where lifecycle.settings.connectsOnDemand:
                place = .conclusion(state.series?.conclusion)
                return .init()
            default: break
            }
            let number: UInt64
            (number, dropped) = try queue.append(item)
            place = .queue(number)
            guard let greeting, lifecycle.settings.connectsOnDemand else { return .init() }
            return lifecycle.want(greeting, &state)
        }
        queue.fail(dropped: dropped)
        return place
    }
}
