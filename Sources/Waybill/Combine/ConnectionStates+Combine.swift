#if canImport(Combine)
    public import Combine

    extension ConnectionStates {
        /// Publishes the states to Combine: the present state first, then each change once, in order.
        ///
        /// Every subscriber observes separately and receives a state when it demands one. A subscriber that lags more
        /// than 64 changes behind misses the oldest of them. The publisher never fails. Values arrive on a thread of
        /// the concurrent pool, so a view uses `receive(on:)`.
        public var publisher: AnyPublisher<ConnectionState, Never> {
            SequencePublisher {
                var iterator = makeAsyncIterator()
                return { await iterator.next() }
            } failure: { _ in
                nil
            }.eraseToAnyPublisher()
        }
    }
#endif
