#if canImport(Combine)
    public import Combine

    extension Messages {
        /// Publishes the same messages to Combine.
        ///
        /// - Every subscriber iterates separately. Each of the present subscribers gets every message once.
        /// - A message is taken, and thereby acknowledged, when the subscriber demands it and not before. Until then it
        ///   waits as the ``BufferPolicy`` says.
        /// - An element that cannot be decoded fails the publisher, since a publisher cannot continue after a failure.
        ///   The subscription to the topic stays. ``Results/publisher`` continues.
        /// - Cancelling ends the iteration. The subscription to the topic ends when nothing else refers to it.
        ///
        /// Values arrive on a thread of the concurrent pool, so a view uses `receive(on:)`.
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
        /// Publishes the same messages to Combine, each with its own success or failure.
        ///
        /// The publisher fails when the subscription to the topic fails. Demand and cancelling work as with
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
