#if canImport(Combine)
    import Combine

    /// Gives every subscriber an iteration of a sequence, and takes from it what was demanded.
    struct SequencePublisher<Output: Sendable, Failure: Error>: Publisher {
        /// Begins an iteration, and gives what takes the next element from it.
        let begin: @Sendable () -> () async throws -> Output?
        /// What a subscriber is told of an error; nil for an end without one.
        let failure: @Sendable (any Error) -> Failure?

        func receive<S: Subscriber>(subscriber: S) where Failure == S.Failure, Output == S.Input {
            let delivery = DemandedDelivery<Output>(
                // Begun here and not in the task, so that nothing is missed from now on.
                next: begin(),
                receive: { subscriber.receive($0).max },
                complete: { [failure] error in
                    let told = error.flatMap(failure).map(Subscribers.Completion.failure)
                    subscriber.receive(completion: told ?? .finished)
                }
            )
            subscriber.receive(subscription: SequenceSubscription(delivery: delivery))
            delivery.run()
        }
    }

    /// One subscriber's demand, in Combine's words.
    private final class SequenceSubscription<Element: Sendable>: Subscription {
        private let delivery: DemandedDelivery<Element>

        init(delivery: DemandedDelivery<Element>) {
            self.delivery = delivery
        }

        func request(_ demand: Subscribers.Demand) {
            delivery.demand(demand.max)
        }

        func cancel() {
            delivery.cancel()
        }
    }
#endif
