import WireCore

/// Takes elements from a sequence only as they are demanded: the core of the bridge to Combine.
///
/// `@unchecked Sendable`, because: the three closures alone are not `Sendable`. Only the one task of ``run()`` calls
/// them, one at a time. Their creator has released them by then.
package final class DemandedDelivery<Element: Sendable>: @unchecked Sendable {
    private struct State {
        /// The number of elements demanded and not yet taken; nil for no limit.
        var demand: Int? = 0
        var waiter: CheckedContinuation<Void, Never>?
        var task: Task<Void, Never>?
        /// Whether the delivery was cancelled or has ended.
        var isOver = false

        /// Takes one element off the demand; false if there is none.
        mutating func takeDemand() -> Bool {
            guard let count = demand else { return true }
            guard count > 0 else { return false }
            demand = count - 1
            return true
        }
    }

    private let state = Locked(State())
    private let next: () async throws -> Element?
    private let receive: (Element) -> Int?
    private let complete: ((any Error)?) -> Void

    /// Joins a sequence and its subscriber; ``run()`` starts the delivery.
    ///
    /// - Parameters:
    ///   - next: Takes the next element; nil at the end.
    ///   - receive: Hands over the element and returns the further demand; nil for no limit.
    ///   - complete: Called once at the end, with the error or nil; not called after ``cancel()``.
    package init(
        next: @escaping () async throws -> Element?,
        receive: @escaping (Element) -> Int?,
        complete: @escaping ((any Error)?) -> Void
    ) {
        self.next = next
        self.receive = receive
        self.complete = complete
    }

    /// Adds to the demand.
    ///
    /// - Parameter count: The number of elements beyond those already demanded; nil for no limit.
    package func demand(_ count: Int?) {
        let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
            if let count, let present = state.demand {
                let (sum, isTooMuch) = present.addingReportingOverflow(max(count, 0))
                state.demand = isTooMuch ? nil : sum
            } else {
                state.demand = nil
            }
            return state.demand != 0 ? state.waiter.take() : nil
        }
        waiter?.resume()
    }

    /// Ends the delivery; of all elements, only one that is being handed over at this moment still arrives.
    package func cancel() {
        let (waiter, task) = state.withLock { state in
            state.isOver = true
            return (state.waiter.take(), state.task.take())
        }
        task?.cancel()
        waiter?.resume()
    }

    /// Starts the delivery; call it once.
    package func run() {
        let task = Task { [self] in await deliver() }
        let isOver = state.withLock { state in
            if !state.isOver { state.task = task }
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    private func deliver() async {
        do {
            while await takeDemand() {
                guard let element = try await next() else { return finish(nil) }
                if state.withLock({ $0.isOver }) { return }
                demand(receive(element))
            }
        } catch {
            finish(error)
        }
    }

    /// Waits until an element is demanded; returns false after a cancellation.
    private func takeDemand() async -> Bool {
        while true {
            let (isOver, isDemanded) = state.withLock { state in
                state.isOver ? (true, false) : (false, state.takeDemand())
            }
            if isOver || isDemanded { return isDemanded }
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard !state.isOver, state.demand == 0 else { return false }
                    state.waiter = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        }
    }

    private func finish(_ error: (any Error)?) {
        let mustTell = state.withLock { state in
            defer { state.isOver = true }
            state.task = nil
            return !state.isOver
        }
        if mustTell { complete(error) }
    }
}
