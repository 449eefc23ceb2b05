package import Waybill
import WireCore

extension ConnectionLifecycle {
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
        send: @escaping @Sendable (Session, PendingCall<Answer>) throws(WaybillError) -> Void,
        withdraw: @escaping @Sendable (PendingCall<Answer>) -> Void
    ) async throws -> Answer {
        let call = PendingCall<Answer>()
        let number = Locked<UInt64?>(nil)
        let item = OfflineQueue<Session>.Item(
            topic: request.topic,
            byteCount: request.body.count,
            patience: patience,
            send: { session throws(WaybillError) in
                do throws(WaybillError) {
                    try send(session, call)
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
                    case .queued(let place): number.withLock { $0 = place }
                    case .connected(let session): try send(session, call)
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
