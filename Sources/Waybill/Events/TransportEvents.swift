/// The events of a transport, from the start of the iteration on: each event once, in order.
///
/// Every iteration observes separately; any number may run at the same time. An iteration that lags more than 4,096
/// events behind misses the oldest. It then gets an event of the kind ``TransportEvent/Kind/missed`` with their number
/// in their place. The sequence ends when the transport is gone.
///
/// ```swift
/// for await event in provider.events where event.kind == .dropped {
///     print("\(event.count ?? 0) messages of \(event.topic ?? "") are lost")
/// }
/// ```
public struct TransportEvents: AsyncSequence, Sendable {
    let source: TransportEventSource?

    /// An empty sequence, for a transport that reports no events.
    ///
    /// Iterating over it ends at once.
    public init() {
        source = nil
    }

    init(_ source: TransportEventSource) {
        self.source = source
    }

    /// Begins to observe.
    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(observation: source?.registry.observe())
    }

    /// One observer.
    public struct AsyncIterator: AsyncIteratorProtocol {
        private let observation: EventRegistry.Observation?
        private var batch: ArraySlice<TransportEvent> = []

        init(observation: EventRegistry.Observation?) {
            self.observation = observation
        }

        /// Returns the next event; nil when the transport is gone or the task is cancelled.
        public mutating func next() async -> TransportEvent? {
            while batch.isEmpty {
                guard let more = try? await observation?.mailbox.take() else { return nil }
                batch = more[...]
            }
            return batch.popFirst()
        }

        /// Does the same as ``next()``, on the caller's actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> TransportEvent? {
            await next()
        }
    }
}
