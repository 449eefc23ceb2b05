import WireCore

/// Takes elements from a sequence as somebody demands them, and none before: what the bridge to Combine is made of.
///
/// `@unchecked Sendable`, because: the three closures alone are not `Sendable`. They are called by the one task of
/// ``run()`` and nobody else, one at a time, and whoever made them has let go of them by then.
package final class DemandedDelivery<Element: Sendable>: @unchecked Sendable {
    private struct State {
        /// How many elements are demanded and not taken; nil for all there are.
        var demand: Int? = 0
        var waiter: CheckedContinuation<Void, Never>?
        var task: Task<Void, Never>?
        /// Whether it was cancelled or has ended.
        var isOver = false

        /// Takes one element off the demand, if there is any.
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

    /// Joins both sides; ``run()`` sets them going.
    ///
    /// - Parameters:
    ///   - next: Takes the next element; nil at the end.
    ///   - receive: Hands it over, and gives the further demand, nil for all there are.
    ///   - complete: Called once, unless it was cancelled before: with the error that has ended it, or nil.
    package init(
        next: @escaping () async throws -> Element?,
        receive: @escaping (Element) -> Int?,
        complete: @escaping ((any Error)?) -> Void
    ) {
        self.next = next
        self.receive = receive
        self.complete = complete
    }

    /// Demands more.
    /// - Parameter count: How many elements beyond those that are demanded already; nil for all there are.
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

    /// Ends it: nothing is handed over from now on but an element that is being handed over at this moment.
    package func cancel() {
        let (waiter, task) = state.withLock { state in
            state.isOver = true
            return (state.waiter.take(), state.task.take())
        }
        task?.cancel()
        waiter?.resume()
    }

    /// Begins to meet the demand.
    ///
    /// To be called once.
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

    /// Waits until an element is demanded; false when it was cancelled.
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
