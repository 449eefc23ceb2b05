#if canImport(Combine)
    public import Combine

    extension ConnectionStates {
        /// The same states for Combine: the present one first, then each change once, in order.
        ///
        /// Every subscriber is an observer of its own and gets a state when it demands one. One that lags more than
        /// 64 changes behind misses the oldest of them. It never fails; values come on a thread of the concurrent
        /// pool, so a view takes them through `receive(on:)`.
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
