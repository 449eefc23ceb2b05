import Waybill
import WireCore

/// The requests that wait while a mock's connection is away, in the order in which they came.
final class MockOutage: Sendable {
    private struct Waiting: Sendable {
        let request: Request
        let continuation: CheckedContinuation<MockTransport.Outcome?, any Error>
    }

    private struct State: Sendable {
        var isOver = true
        var waiting: [UInt64: Waiting] = [:]
        var last: UInt64 = 0
    }

    private let state = Locked(State())

    /// Whether the connection is away.
    var isOn: Bool { state.withLock { !$0.isOver } }

    func begin() {
        state.withLock { $0.isOver = false }
    }

    /// Ends it: those who wait go on, one after the other.
    ///
    /// - Parameter admit: Finds what becomes of a request.
    func end(_ admit: (Request) throws -> MockTransport.Outcome) {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            state.isOver = true
            return state.waiting.valuesInKeyOrder
        }
        for one in waiting {
            one.continuation.resume(with: Result { try admit(one.request) })
        }
    }

    /// Ends it: those who wait fail.
    func end(throwing error: WaybillError) {
        let waiting = state.withLock { state in
            defer { state.waiting = [:] }
            state.isOver = true
            return state.waiting.valuesInKeyOrder
        }
        for one in waiting { one.continuation.resume(throwing: error) }
    }

    /// Waits for the connection.
    ///
    /// - Parameters:
    ///   - request: The request that needs it.
    ///   - time: How long it may wait.
    ///   - clock: What that is measured by.
    /// - Returns: What becomes of the request; nil when the connection is there.
    /// - Throws: `notConnected` after the time; `CancellationError`.
    func pass(
        _ request: Request,
        within time: Duration,
        by clock: any Clock<Duration>
    ) async throws -> MockTransport.Outcome? {
        let number = state.withLock { state -> UInt64? in
            guard !state.isOver else { return nil }
            state.last += 1
            return state.last
        }
        guard let number else { return nil }
        let patience = Task {
            guard (try? await clock.sleep(for: time)) != nil else { return }
            fail(
                number,
                WaybillError(
                    .notConnected,
                    "the connection was lost and is not back yet",
                    topic: request.topic,
                    command: request.command.name
                )
            )
        }
        defer { patience.cancel() }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || state.isOver { return true }
                    state.waiting[number] = Waiting(request: request, continuation: continuation)
                    return false
                }
                guard isOver else { return }
                if Task.isCancelled {
                    continuation.resume(throwing: CancellationError())
                } else {
                    continuation.resume(returning: nil)
                }
            }
        } onCancel: {
            fail(number, CancellationError())
        }
    }

    private func fail(_ number: UInt64, _ error: any Error) {
        state.withLock { $0.waiting.removeValue(forKey: number) }?.continuation
            .resume(throwing: error)
    }
}
