public import Waybill
public import WireCore

/// One request that waits for the peer's answer.
///
/// Compiled into the transport's own module, since every acknowledged message goes through it.
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

    @inlinable package init() { state = Locked(.new) }

    /// One that nobody waits for.
    ///
    /// - Parameter observer: Called once with the outcome, with no lock held.
    package init(_ observer: @escaping @Sendable (Result<Answer, any Error>) -> Void) {
        state = Locked(.observed(observer))
    }

    /// Ends it as cancelled, unless it has its outcome already.
    /// - Returns: Whether it had none.
    package func withdraw() -> Bool {
        guard !isDone else { return false }
        _ = settle(.failure(CancellationError()))
        return true
    }

    /// Sends and waits.
    ///
    /// To be called once.
    ///
    /// - Parameters:
    ///   - send: Hands the request over, with this call.
    ///   - withdraw: Called when the task is cancelled while it waits.
    /// - Returns: The peer's answer.
    /// - Throws: What `send` throws; what ``fail(_:)`` is given; `CancellationError`.
    @inlinable
    package func answer(
        sending send: () throws(WaybillError) -> Void,
        withdrawing withdraw: @Sendable (PendingCall) -> Void
    ) async throws -> Answer {
        await Suspension.wait { continuation in
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
        // Read with the lock, so that whoever is resumed sees all that was written before.
        guard case .done(let result) = state.withLock({ $0 }) else { throw CancellationError() }
        return try result.get()
    }

    /// Whether its outcome is there.
    package var isDone: Bool {
        state.withLock { state in
            if case .done = state { true } else { false }
        }
    }

    /// Ends the wait with an answer.
    @inlinable
    package func succeed(_ answer: Answer) {
        _ = finish(.success(answer))
    }

    /// Ends the wait with an error.
    @inlinable
    package func fail(_ error: WaybillError) {
        _ = finish(.failure(error))
    }

    /// - Returns: Whether somebody waited for this.
    @inlinable
    func finish(_ result: Result<Answer, any Error>) -> Bool {
        let waiting = settle(result)
        waiting?.resume()
        return waiting != nil
    }

    /// Ends the wait, but for waking whoever waits.
    /// - Returns: Who is to be resumed.
    @inlinable
    package func settle(_ result: Result<Answer, any Error>) -> Suspension.Continuation? {
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
