import WireCore

/// Elements that wait for one consumer, who takes all of them at once.
///
/// The consumer is woken once however many elements came, and takes a whole array by swapping it out:
/// that is what makes a stream of small messages cheap.
package final class Mailbox<Element: Sendable>: Sendable {
    private struct State: Sendable {
        var waiting: [Element] = []
        var consumer: Suspension.Continuation?
        var end: Ending?
    }

    /// How the stream ended.
    package enum Ending: Sendable {
        case finished
        case failed(WaybillError)
    }

    private let state = Locked(State())

    package init() {}

    /// Lets `body` add to what waits, or drop from it, and wakes the consumer.
    package func append<Result: Sendable>(_ body: (inout [Element]) -> Result) -> Result {
        let (result, consumer) = state.withLock { state in
            let result = body(&state.waiting)
            return (result, state.waiting.isEmpty ? nil : state.consumer.take())
        }
        consumer?.resume()
        return result
    }

    /// Looks at what waits.
    package func withWaiting<Result: Sendable>(_ body: ([Element]) -> Result) -> Result {
        state.withLock { body($0.waiting) }
    }

    /// Puts back what the consumer took and did not use.
    package func putBack(_ elements: ArraySlice<Element>) {
        guard !elements.isEmpty else { return }
        append { $0.insert(contentsOf: elements, at: 0) }
    }

    /// Lets the consumer finish what waits, and then see the end.
    ///
    /// The first end counts.
    package func finish(_ end: Ending) {
        let consumer = state.withLock { state in
            if state.end == nil { state.end = end }
            return state.consumer.take()
        }
        consumer?.resume()
    }

    /// Takes what waits, waiting for it if there is nothing.
    ///
    /// - Parameter onTake: Called with the lock held as elements are taken.
    /// - Returns: At least one element, or nil at the end.
    /// - Throws: `WaybillError`, once, if that is how the stream ended; `CancellationError`.
    package func take(_ onTake: @Sendable () -> Void = {}) async throws -> [Element]? {
        while true {
            if let found = try takeNow(onTake) { return found.elements }
            try Task.checkCancellation()
            await Suspension.wait { continuation in
                let mustWait = state.withLock { state in
                    guard state.waiting.isEmpty, state.end == nil, !Task.isCancelled else {
                        return false
                    }
                    state.consumer = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            } onCancel: {
                state.withLock { $0.consumer.take() }?.resume()
            }
        }
    }

    private struct Found: Sendable {
        let elements: [Element]?
    }

    private func takeNow(_ onTake: () -> Void) throws(WaybillError) -> Found? {
        try state.withLock { state throws(WaybillError) -> Found? in
            guard state.waiting.isEmpty else {
                onTake()
                defer { state.waiting = [] }
                return Found(elements: state.waiting)
            }
            switch state.end {
            case nil: return nil
            case .finished: return Found(elements: nil)
            case .failed(let error):
                state.end = .finished
                throw error
            }
        }
    }
}
