#if canImport(Combine)
    public import Combine

    extension TransportEvents {
        /// Publishes the events to Combine: each once, in order, from the moment of subscribing.
        ///
        /// Every subscriber observes separately and receives an event when it demands one. A subscriber that lags is
        /// told how many events it has missed. The publisher never fails, and finishes when the transport is gone.
        /// Values arrive on a thread of the concurrent pool.
        public var publisher: AnyPublisher<TransportEvent, Never> {
            SequencePublisher {
                var iterator = makeAsyncIterator()
                return { await iterator.next() }
            } failure: { _ in
                nil
            }.eraseToAnyPublisher()
        }
    }
#endif
