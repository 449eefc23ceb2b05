import MQTTWire
import Waybill
import WireCore

/// One request that waits for its acknowledgement.
final class MQTTPendingCall: MQTTCall {
    /// What the server answers.
    enum Answer: Sendable {
        case published(MQTTReasonCode, MQTTProperties)
        case subscribed(MQTTSuback)
        case unsubscribed(MQTTUnsuback)
    }

    private enum State: Sendable {
        case new
        case waiting(CheckedContinuation<Answer, any Error>)
        case done
    }

    private let state = Locked(State.new)

    /// Sends and waits.
    ///
    /// - Parameters:
    ///   - send: Hands the request over, with this call.
    ///   - withdraw: Called when the task is cancelled while it waits.
    /// - Returns: The server's answer.
    /// - Throws: What `send` throws; what ``fail(_:)`` is given; `CancellationError`.
    func answer(
        sending send: () throws(WaybillError) -> Void,
        withdrawing withdraw: @Sendable (MQTTPendingCall) -> Void
    ) async throws -> Answer {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isNew = state.withLock { state in
                    guard case .new = state else { return false }
                    state = .waiting(continuation)
                    return true
                }
                guard isNew else { return continuation.resume(throwing: CancellationError()) }
                do throws(WaybillError) {
                    try send()
                } catch {
                    fail(error)
                }
            }
        } onCancel: {
            if finish(.failure(CancellationError())) { withdraw(self) }
        }
    }

    /// Ends the wait with an answer.
    func succeed(_ answer: Answer) {
        _ = finish(.success(answer))
    }

    /// Ends the wait with an error.
    func fail(_ error: WaybillError) {
        _ = finish(.failure(error))
    }

    /// - Returns: Whether somebody waited for this.
    private func finish(_ result: Result<Answer, any Error>) -> Bool {
        let before = state.withLock { state in
            defer { state = .done }
            return state
        }
        guard case .waiting(let continuation) = before else { return false }
        continuation.resume(with: result)
        return true
    }
}
