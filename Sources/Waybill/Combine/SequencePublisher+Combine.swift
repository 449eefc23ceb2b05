#if canImport(Combine)
    import Combine

    /// Gives every subscriber its own iteration of a sequence, and takes only the elements that are demanded.
    struct SequencePublisher<Output: Sendable, Failure: Error>: Publisher {
        /// Begins an iteration; the returned closure takes the next element.
        let begin: @Sendable () -> () async throws -> Output?
        /// Maps an error to the publisher's failure; nil finishes the publisher without one.
        let failure: @Sendable (any Error) -> Failure?

        func receive<S: Subscriber>(subscriber: S) where Failure == S.Failure, Output == S.Input {
            let delivery = DemandedDelivery<Output>(
                // Begun here and not in the task, so that no element from now on is missed.
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

    /// One subscriber's demand, as a Combine subscription.
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
