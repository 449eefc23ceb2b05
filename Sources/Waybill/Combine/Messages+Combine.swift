#if canImport(Combine)
    public import Combine

    extension Messages {
        /// The same messages for Combine.
        ///
        /// - Every subscriber is an iteration of its own: those that are there at the same time get every message
        ///   once.
        /// - A message is taken, and thereby acknowledged, when the subscriber has demanded it and not before: what
        ///   it does not demand waits as the ``BufferPolicy`` says.
        /// - An element that cannot be decoded fails the publisher, since a publisher cannot go on after a failure,
        ///   and leaves the subscription to the topic as it is; ``Results/publisher`` goes on.
        /// - Cancelling ends the iteration, and the subscription to the topic when nobody else refers to it.
        ///
        /// Values come on a thread of the concurrent pool, so a view takes them through `receive(on:)`.
        public var publisher: AnyPublisher<Element, any Error> {
            SequencePublisher {
                var iterator = makeAsyncIterator()
                return { try await iterator.next() }
            } failure: {
                $0
            }.eraseToAnyPublisher()
        }
    }

    extension Messages.Results {
        /// The same messages for Combine, each with its own success or failure.
        ///
        /// It fails when the subscription to the topic has failed. Demand and cancelling are as with
        /// ``Messages/publisher``.
        public var publisher: AnyPublisher<Result<Element, WaybillError>, any Error> {
            SequencePublisher {
                var iterator = makeAsyncIterator()
                return { try await iterator.next() }
            } failure: {
                $0
            }.eraseToAnyPublisher()
        }
    }
#endif
