public import Waybill
public import WireCore

/// One request that waits for the peer's answer.
///
/// Inlinable into the transport's module, because every acknowledged message passes it.
@usableFromInline
package final class PendingCall<Answer: Sendable>: Sendable {
    @usableFromInline
    enum State: Sendable {
        case new
        case waiting(Suspension.Continuation)
        case observed(@Sendable (Result<Answer, any Error>) -> Void)
        case done(Result<Answer, any Error>)
    }

    @usableFromInline let state: Locked<State>
    @usableFromInline let willSucceed: (@Sendable () -> Void)?

    /// Makes a call that a task waits for.
    ///
    /// - Parameter willSucceed: Called when the answer has come, before the task learns of it; nil for nothing.
    @inlinable package init(willSucceed: (@Sendable () -> Void)? = nil) {
        state = Locked(.new)
        self.willSucceed = willSucceed
    }

    /// Makes a call whose outcome goes to a closure instead of a waiting task.
    ///
    /// - Parameter observer: Called once with the outcome, with no lock held.
    package init(_ observer: @escaping @Sendable (Result<Answer, any Error>) -> Void) {
        state = Locked(.observed(observer))
        willSucceed = nil
    }

    /// Ends the call as cancelled, unless it already has an outcome.
    ///
    /// - Returns: Whether the call had no outcome before.
    package func withdraw() -> Bool {
        guard !isDone else { return false }
        _ = resolve(.failure(CancellationError()))
        return true
    }

    /// Sends the request and waits for the answer.
    ///
    /// Called once.
    ///
    /// - Parameters:
    ///   - send: Hands the request over, with this call.
    ///   - withdraw: Called when the task is cancelled while it waits.
    /// - Returns: The peer's answer.
    /// - Throws: The errors of `send` and of ``fail(_:)``; `CancellationError`.
    @inlinable
    package func answer(
        sending send: () throws(WaybillError) -> Void,
        withdrawing withdraw: @Sendable (PendingCall) -> Void
    ) async throws -> Answer {
        await Suspension.wait(for: "the answer to a call") { continuation in
            let isNew = state.withLock { state in
                guard case .new = state else { return false }
                state = .waiting(continuation)
                return true
            }
            guard isNew else { return continuation.resume() }
            do throws(WaybillError) {
                try send()
            } catch {
                fail(error)
            }
        } onCancel: {
            if finish(.failure(CancellationError())) { withdraw(self) }
        }
        // Read under the lock, so that the resumed task sees all writes before the result.
        guard case .done(let result) = state.withLock({ $0 }) else { throw CancellationError() }
        return try result.get()
    }

    /// The outcome; nil before it.
    package var outcome: Result<Answer, any Error>? {
        state.withLock { state in
            if case .done(let result) = state { result } else { nil }
        }
    }

    /// Whether the call has an outcome.
    @inlinable package var isDone: Bool {
        state.withLock { state in
            if case .done = state { true } else { false }
        }
    }

    /// Ends the call with an answer.
    @inlinable
    package func succeed(_ answer: Answer) {
        _ = finish(.success(answer))
    }

    /// Ends the call with an error.
    @inlinable
    package func fail(_ error: WaybillError) {
        _ = finish(.failure(error))
    }

    /// Ends the call and resumes the waiting task.
    ///
    /// - Returns: Whether a task was waiting.
    @inlinable
    func finish(_ result: Result<Answer, any Error>) -> Bool {
        let waiting = resolve(result)
        waiting?.resume()
        return waiting != nil
    }

    /// Ends the call without resuming the waiting task.
    ///
    /// - Returns: The continuation of the waiting task, which the caller has to resume; nil without one.
    @inlinable
    package func resolve(_ result: Result<Answer, any Error>) -> Suspension.Continuation? {
        if let willSucceed, case .success = result, !isDone { willSucceed() }
        let (caller, observer) = state.withLock {
            state -> (
                Suspension.Continuation?, (@Sendable (Result<Answer, any Error>) -> Void)?
            ) in
            switch state {
            case .done: return (nil, nil)
            case .new:
                state = .done(result)
                return (nil, nil)
            case .waiting(let continuation):
                state = .done(result)
                return (continuation, nil)
            case .observed(let observer):
                state = .done(result)
                return (nil, observer)
            }
        }
        observer?(result)
        return caller
    }
}
