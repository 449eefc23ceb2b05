#if canImport(Combine)
    public import Combine

    extension TransportEvents {
        /// The same events for Combine: each once, in order, from when somebody subscribes.
        ///
        /// Every subscriber is an observer of its own and gets an event when it demands one; one that lags is told
        /// what it has missed. It never fails, and finishes when the transport is gone; values come on a thread of
        /// the concurrent pool.
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
