package import Waybill
import WireCore

// Requests that come while there is no connection, or upon one that is just ending.
extension ConnectionLifecycle {
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
                guard isAlive else { throw error }
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
        greeting: () throws(WaybillError) -> Greeting,
        connection: () async throws -> Connection,
        now: (Connection) async throws -> Messages<Message>
    ) async throws -> Messages<Message> {
        guard options.startsOffline else { return try await now(connection()) }
        while true {
            if connected == nil, let messages = later() {
                // Nothing would end it any more.
                if isShutDown { throw WaybillError.shutDown.about(request) }
                if settings.connectsOnDemand { wantConnection(try greeting()) }
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

    // MARK: Sends that wait

    /// Whether a send may wait in the queue now.
    ///
    /// - Parameter isAcknowledged: Whether the peer will acknowledge it.
    /// - Returns: Whether it may.
    package func queues(isAcknowledged: Bool) -> Bool {
        queue.policy.isEnabled && (isAcknowledged || queue.policy.includesUnacknowledged)
            && state.withLock { $0.machine.isReturning }
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
        let (connection, number, dropped) = try state.withLock {
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
