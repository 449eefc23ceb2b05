package import Waybill
import WireCore

/// The way of a request to a connection: to the one that there is, to the next one, or into the queue.
package struct RequestPath<Connection: TransportConnection>: Sendable {
    let lifecycle: ConnectionLifecycle<Connection>

    private var queue: OfflineQueue<Connection> { lifecycle.queue }

    /// The connection for a request that makes no sense without one.
    /// - Throws: `notConnected`, `shutDown`.
    package func current(for request: Request) throws(WaybillError) -> Connection {
        guard let connection = lifecycle.connected else { throw notConnected(request) }
        return connection
    }

    /// Lets a request pass that makes sense while there is a connection or one is on its way back.
    /// - Throws: `notConnected`, `shutDown`.
    package func check(_ request: Request) throws(WaybillError) {
        guard lifecycle.isAlive else { throw notConnected(request) }
    }

    func notConnected(_ request: Request) -> WaybillError {
        lifecycle.isShutDown ? .shutDown : WaybillError.noConnection.about(request)
    }

    /// The connection for a request, made first if need be; ask ``ConnectionLifecycle/connected`` before.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - greeting: The greeting, should a connection be made for it.
    /// - Returns: A connection that the peer has accepted.
    /// - Throws: As ``ConnectionLifecycle/connect(_:timeout:)``; `notConnected` when connections are made by hand only; what
    ///   `greeting` throws.
    package func connection(
        for request: Request,
        greeting: () throws(WaybillError) -> Connection.Greeting
    ) async throws -> Connection {
        let words = lifecycle.settings.connectsOnDemand ? try greeting() : nil
        let (step, series) = try lifecycle.apply { state throws(WaybillError) in
            do throws(WaybillError) {
                let step = try state.machine.request(connects: words != nil)
                if case .begin = step.action {
                    state.greeting = words.map { ($0, lifecycle.settings.connectTimeout) }
                }
                return step
            } catch {
                throw error.code == .shutDown ? error : error.about(request)
            }
        }
        if case .use(let connection) = step.action { return connection }
        return try await lifecycle.made(by: series, step, within: lifecycle.settings.connectTimeout)
            .connection
    }

    /// Runs a request over a connection; over the next one if it came upon one that was just ending, so that nothing was
    /// sent.
    ///
    /// - Parameters:
    ///   - queued: Has it wait in the queue and returns its result; nil when it may not wait.
    ///   - connection: Makes a connection if need be.
    ///   - send: Sends over it.
    /// - Returns: What `queued` or `send` returns.
    /// - Throws: What the closures throw.
    package func sending<Result>(
        orQueued queued: () async throws -> Result? = { nil },
        connection: () async throws -> Connection,
        over send: (Connection) async throws -> Result
    ) async throws -> Result {
        while true {
            if let result = try await queued() { return result }
            let present = try await connection()
            do { return try await send(present) } catch let error as WaybillError
                where error.code == .notConnected
            {
                try await present.over()
                guard lifecycle.isAlive else { throw error }
            }
        }
    }

    /// Subscribes: over the connection that there is or that is made for it, or, where that is wanted, with the next one.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - options: The options of its command.
    ///   - later: Has the next connection subscribe; nil when there is one already.
    ///   - greeting: The greeting, should a connection be made for it.
    ///   - connection: Makes a connection if need be.
    ///   - now: Subscribes over it.
    /// - Returns: The messages.
    /// - Throws: `shutDown`, and what `connection` and `now` throw.
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
            if lifecycle.connected == nil, let messages = later() {
                // Nothing would end it any more.
                if lifecycle.isShutDown { throw WaybillError.shutDown.about(request) }
                if lifecycle.settings.connectsOnDemand { lifecycle.wantConnection(try greeting()) }
                return messages
            }
            let present: Connection
            do { present = try await connection() } catch let error as WaybillError
                where error.isRetryable && !lifecycle.isShutDown
            {
                // There was to be one, and it has come to nothing.
                try Task.checkCancellation()
                continue
            }
            do { return try await now(present) } catch let error as WaybillError
                where [.connectionLost, .notConnected].contains(error.code) && !lifecycle.isShutDown
            {
                // It came upon a connection that was just ending.
                try await present.over()
            }
        }
    }

    // MARK: Sends that wait

    /// Whether a send may wait in the queue now.
    ///
    /// - Parameter isAcknowledged: Whether the peer will acknowledge it.
    /// - Returns: Whether it may.
    package func queues(isAcknowledged: Bool) -> Bool {
        queue.policy.isEnabled && (isAcknowledged || queue.policy.includesUnacknowledged)
            && lifecycle.state.withLock { $0.machine.isReturning }
    }

    /// Has sends go first that an earlier transport has left.
    package func preload(_ items: [OfflineQueue<Connection>.Item]) {
        queue.preload(items)
    }

    /// Does a send in its turn, once the connection is back.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - patience: How long it may wait for the connection.
    ///   - send: Hands it to a connection, with the call; throws when nothing was sent.
    ///   - withdraw: Called when the task is cancelled after it was handed over.
    /// - Returns: The peer's answer.
    /// - Throws: `limitExceeded` when the queue is full, `timedOut` when it has waited too long; what `send` throws;
    ///   what the call is failed with; `CancellationError`.
    package func queued<Answer: Sendable>(
        _ request: Request,
        patience: Duration,
        send: @escaping @Sendable (Connection, PendingCall<Answer>) throws(WaybillError) -> Void,
        withdraw: @escaping @Sendable (PendingCall<Answer>) -> Void
    ) async throws -> Answer {
        let call = PendingCall<Answer>()
        let number = Locked<UInt64?>(nil)
        let item = OfflineQueue<Connection>.Item(
            topic: request.topic,
            byteCount: request.body.count,
            patience: patience,
            send: { connection throws(WaybillError) in
                // A call that was withdrawn meanwhile is not sent.
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
        do {
            return try await call.answer(
                sending: { () throws(WaybillError) in
                    let (connection, place) = try enqueue(item, for: request)
                    number.withLock { $0 = place }
                    if let connection { try send(connection, call) }
                    if let place, call.isDone { _ = queue.withdraw(place) }
                },
                withdrawing: { [queue] call in
                    if let place = number.withLock({ $0 }), queue.withdraw(place) { return }
                    withdraw(call)
                }
            )
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    /// Has a send wait for the connection that is on its way.
    ///
    /// - Returns: The connection, if there is one after all; otherwise the place in the queue.
    /// - Throws: `limitExceeded`; `notConnected` and `shutDown` when none is on its way any longer.
    private func enqueue(
        _ item: OfflineQueue<Connection>.Item,
        for request: Request
    ) throws(WaybillError) -> (Connection?, UInt64?) {
        let (connection, number, dropped) = try lifecycle.state.withLock {
            state throws(WaybillError) -> (Connection?, UInt64?, [OfflineQueue<Connection>.Item]) in
            do throws(WaybillError) {
                if case .use(let connection) = try state.machine.request(connects: false).action {
                    return (connection, nil, [])
                }
            } catch {
                throw error.code == .shutDown ? error : error.about(request)
            }
            let (number, dropped) = try queue.append(item)
            return (nil, number, dropped)
        }
        queue.fail(dropped: dropped)
        return (connection, number)
    }
}
