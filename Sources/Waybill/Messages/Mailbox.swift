import WireCore

/// A queue of elements for one consumer, which takes all waiting elements at once.
///
/// However many elements arrive, the consumer is woken once and takes the whole array by a swap. That keeps a stream of
/// small messages cheap.
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

    /// Lets `body` change the waiting elements, and wakes the consumer.
    package func append<Result: Sendable>(_ body: (inout [Element]) -> Result) -> Result {
        let (result, consumer) = state.withLock { state in
            let result = body(&state.waiting)
            return (result, state.waiting.isEmpty ? nil : state.consumer.take())
        }
        consumer?.resume()
        return result
    }

    /// Reads the waiting elements.
    package func withWaiting<Result: Sendable>(_ body: ([Element]) -> Result) -> Result {
        state.withLock { body($0.waiting) }
    }

    /// Puts elements back that the consumer took and did not use.
    package func putBack(_ elements: ArraySlice<Element>) {
        guard !elements.isEmpty else { return }
        append { $0.insert(contentsOf: elements, at: 0) }
    }

    /// Ends the stream; the consumer sees the end after the waiting elements.
    ///
    /// Only the first call counts.
    package func finish(_ end: Ending) {
        let consumer = state.withLock { state in
            if state.end == nil { state.end = end }
            return state.consumer.take()
        }
        consumer?.resume()
    }

    /// Takes all waiting elements, or waits for the first one.
    ///
    /// - Parameter onTake: Called with the lock held when elements are taken.
    /// - Returns: At least one element, or nil at the end.
    /// - Throws: The stream's `WaybillError`, once, if the stream failed; `CancellationError`.
    package func take(_ onTake: @Sendable () -> Void = {}) async throws -> [Element]? {
        while true {
            if let found = try takeNow(onTake) { return found.elements }
            try Task.checkCancellation()
            await Suspension.wait(for: "a stream of the type \(Element.self)") { continuation in
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
