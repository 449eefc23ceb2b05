import WireCore

/// Takes elements from a sequence only as they are demanded: the core of the bridge to Combine.
package final class DemandedDelivery<Element: Sendable>: Sendable {
    /// The sequence and its subscriber.
    ///
    /// `@unchecked Sendable`, because: the three closures alone are not `Sendable`. Only the one task of ``run()`` calls
    /// them, one at a time. Their creator has released them by then.
    private struct Ends: @unchecked Sendable {
        let next: () async throws -> Element?
        let receive: (Element) -> Int?
        let complete: ((any Error)?) -> Void
    }

    private struct State: Sendable {
        /// The ends until the delivery runs; its task has them afterwards, since a subscriber may hold the delivery.
        var ends: Ends?
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

    private let state: Locked<State>

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
        state = Locked(
            State(ends: Ends(next: next, receive: receive, complete: complete))
        )
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

    /// Ends the delivery, and lets go of sequence and subscriber.
    ///
    /// Of all elements, only one that is being handed over at this moment still arrives.
    package func cancel() {
        // The ends are released without the lock.
        let (waiter, task, ends) = state.withLock { state in
            state.isOver = true
            return (state.waiter.take(), state.task.take(), state.ends.take())
        }
        _ = ends
        task?.cancel()
        waiter?.resume()
    }

    /// Starts the delivery; call it once.
    package func run() {
        guard let ends = state.withLock({ $0.ends.take() }) else { return }
        let task = Task { [self] in await deliver(ends) }
        let isOver = state.withLock { state in
            if !state.isOver { state.task = task }
            return state.isOver
        }
        if isOver { task.cancel() }
    }

    private func deliver(_ ends: Ends) async {
        do {
            while await takeDemand() {
                guard let element = try await ends.next() else {
                    if finish() { ends.complete(nil) }
                    return
                }
                if state.withLock({ $0.isOver }) { return }
                demand(ends.receive(element))
            }
        } catch {
            if finish() { ends.complete(error) }
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

    /// Whether the subscriber must be told of the end.
    private func finish() -> Bool {
        state.withLock { state in
            defer { state.isOver = true }
            state.task = nil
            return !state.isOver
        }
    }
}
