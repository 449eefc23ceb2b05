package import Waybill
import WireCore

// Sends that wait for the connection.
extension ConnectionLifecycle {
    /// What becomes of a send that came while there was no connection.
    package enum Placement: Sendable {
        /// It waits, under this number.
        case queued(UInt64)
        /// There is a connection after all.
        case connected(Connection)
    }

    /// Whether a send may wait in the queue now.
    ///
    /// - Parameter isAcknowledged: Whether the peer will acknowledge it.
    /// - Returns: Whether it may.
    package func queues(isAcknowledged: Bool) -> Bool {
        guard queue.policy.isEnabled, isAcknowledged || queue.policy.includesUnacknowledged,
            case .connecting(let attempt) = phase.withLock({ $0 })
        else { return false }
        return attempt.isReconnection
    }

    /// Has a send wait for the connection that is being made again.
    /// - Throws: `limitExceeded`; `notConnected` and `shutDown` when none is being made any longer.
    package func enqueue(
        _ item: OfflineQueue<Connection>.Item,
        for request: Request
    ) throws(WaybillError) -> Placement {
        let (placement, dropped) = try phase.withLock {
            phase throws(WaybillError) -> (Placement?, [OfflineQueue<Connection>.Item]) in
            switch phase {
            case .connected(let connection): return (.connected(connection), [])
            case .connecting:
                let (number, dropped) = try queue.append(item)
                return (.queued(number), dropped)
            case .idle, .shutDown: return (nil, [])
            }
        }
        queue.fail(dropped: dropped)
        guard let placement else { throw notConnected(request) }
        return placement
    }

    /// Has sends go first that an earlier transport has left.
    package func preload(_ items: [OfflineQueue<Connection>.Item]) {
        queue.preload(items)
    }

    /// Withdraws a send that waits.
    /// - Returns: Whether it still did.
    package func withdraw(_ number: UInt64) -> Bool { queue.withdraw(number) }

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
                // Whoever has gone meanwhile wants nothing sent.
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
                    switch try enqueue(item, for: request) {
                    case .queued(let place):
                        number.withLock { $0 = place }
                        if call.isDone { _ = self.withdraw(place) }
                    case .connected(let connection): try send(connection, call)
                    }
                },
                withdrawing: { call in
                    if let place = number.withLock({ $0 }), self.withdraw(place) { return }
                    withdraw(call)
                }
            )
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }
}
