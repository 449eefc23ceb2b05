#if canImport(Combine)
    import Combine
    import WireCore

    /// Gives every subscriber an iteration of a sequence, and takes from it what was demanded.
    struct SequencePublisher<Base: AsyncSequence & Sendable, Failure: Error>: Publisher
    where Base.Element: Sendable {
        typealias Output = Base.Element

        let base: Base
        /// What a subscriber is told of an error; nil for an end without one.
        let failure: @Sendable (any Error) -> Failure?

        func receive<S: Subscriber>(subscriber: S) where Failure == S.Failure, Output == S.Input {
            // Begun here and not in the task, so that nothing is missed from now on.
            var iterator = base.makeAsyncIterator()
            let subscription = SequenceSubscription<Output, Failure>(
                failure: failure,
                next: { try await iterator.next() },
                receive: { subscriber.receive($0) },
                complete: { subscriber.receive(completion: $0) }
            )
            subscriber.receive(subscription: subscription)
            subscription.run()
        }
    }

    /// One subscriber's demand, and the task that meets it.
    ///
    /// `@unchecked Sendable`, because: three closures alone are not `Sendable`, over the iterator and the subscriber.
    /// They are called by the task and nobody else, and it begins when the one call of the subscriber before it, with
    /// the subscription, has returned.
    private final class SequenceSubscription<Input: Sendable, Failure: Error>: Subscription,
        @unchecked Sendable
    {
        private struct State: Sendable {
            var demand = Subscribers.Demand.none
            var waiter: CheckedContinuation<Void, Never>?
            var task: Task<Void, Never>?
            var isCancelled = false
        }

        private let state = Locked(State())
        private let failure: @Sendable (any Error) -> Failure?
        private let next: () async throws -> Input?
        private let receive: (Input) -> Subscribers.Demand
        private let complete: (Subscribers.Completion<Failure>) -> Void

        init(
            failure: @escaping @Sendable (any Error) -> Failure?,
            next: @escaping () async throws -> Input?,
            receive: @escaping (Input) -> Subscribers.Demand,
            complete: @escaping (Subscribers.Completion<Failure>) -> Void
        ) {
            self.failure = failure
            self.next = next
            self.receive = receive
            self.complete = complete
        }

        func request(_ demand: Subscribers.Demand) {
            let waiter = state.withLock { state in
                state.demand += demand
                return state.demand > 0 ? state.waiter.take() : nil
            }
            waiter?.resume()
        }

        func cancel() {
            let (waiter, task) = state.withLock { state in
                state.isCancelled = true
                return (state.waiter.take(), state.task.take())
            }
            task?.cancel()
            waiter?.resume()
        }

        /// Begins to meet the demand. To be called once.
        func run() {
            let task = Task { [self] in await deliver() }
            let isCancelled = state.withLock { state in
                if !state.isCancelled { state.task = task }
                return state.isCancelled
            }
            if isCancelled { task.cancel() }
        }

        private func deliver() async {
            do {
                while await takeDemand() {
                    guard let element = try await next() else { return finish(.finished) }
                    if isCancelled { return }
                    request(receive(element))
                }
            } catch {
                finish(failure(error).map { .failure($0) } ?? .finished)
            }
        }

        /// Waits until an element is demanded; false when the subscription was cancelled.
        private func takeDemand() async -> Bool {
            while true {
                let (isCancelled, isDemanded) = state.withLock { state in
                    let isDemanded = state.demand > 0
                    if isDemanded { state.demand -= 1 }
                    return (state.isCancelled, isDemanded)
                }
                if isCancelled || isDemanded { return !isCancelled }
                // `cancel()` resumes it, too.
                await withCheckedContinuation { continuation in
                    let mustWait = state.withLock { state in
                        guard !state.isCancelled, !(state.demand > 0) else { return false }
                        state.waiter = continuation
                        return true
                    }
                    if !mustWait { continuation.resume() }
                }
            }
        }

        private var isCancelled: Bool { state.withLock { $0.isCancelled } }

        private func finish(_ completion: Subscribers.Completion<Failure>) {
            let mustTell = state.withLock { state in
                defer { state.isCancelled = true }
                state.task = nil
                return !state.isCancelled
            }
            if mustTell { complete(completion) }
        }
    }
#endif
