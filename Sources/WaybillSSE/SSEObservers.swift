import WireCore

/// The observers of the stream events of a transport.
final class SSEObservers: Sendable {
    private struct State: Sendable {
        var continuations: [UInt64: AsyncStream<SSETransport.StreamEvent>.Continuation] = [:]
        var last: UInt64 = 0
        var isOver = false
    }

    private let state = Locked(State())

    /// Whether there is no observer.
    var isEmpty: Bool { state.withLock { $0.continuations.isEmpty } }

    func observe(keeping count: Int) -> AsyncStream<SSETransport.StreamEvent> {
        let (stream, continuation) = AsyncStream.makeStream(
            of: SSETransport.StreamEvent.self,
            bufferingPolicy: .bufferingNewest(max(count, 1))
        )
        let number = state.withLock { state -> UInt64? in
            guard !state.isOver else { return nil }
            state.last += 1
            state.continuations[state.last] = continuation
            return state.last
        }
        guard let number else {
            continuation.finish()
            return stream
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.continuations[number] = nil }
        }
        return stream
    }

    func report(_ event: @autoclosure () -> SSETransport.StreamEvent) {
        let continuations = state.withLock { $0.continuations.valuesInKeyOrder }
        guard !continuations.isEmpty else { return }
        let event = event()
        for continuation in continuations { continuation.yield(event) }
    }

    func finish() {
        let continuations = state.withLock { state in
            state.isOver = true
            return state.continuations.valuesInKeyOrder
        }
        for continuation in continuations { continuation.finish() }
    }
}
