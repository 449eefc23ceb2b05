/// Where a transport reports its events.
///
/// A transport of one's own has one, and gives out its ``events``; the provider then reports there, too.
/// Observers never run on the thread that reports, so that it does not matter which locks that holds.
public final class TransportEventSource: Sendable {
    let registry = EventRegistry()

    /// Begins without observers.
    public init() {}

    deinit {
        registry.finish()
    }

    /// What observers iterate over.
    public var events: TransportEvents { TransportEvents(self) }

    /// Whether there is anybody to report to.
    public var isObserved: Bool { registry.isObserved }

    /// The present time if somebody observes; nil otherwise, when there is nothing to be measured.
    public var timestamp: ContinuousClock.Instant? { isObserved ? .now : nil }

    /// Reports an event, which is not made unless somebody observes.
    ///
    /// Calls made one after another are observed in that order.
    public func report(_ event: @autoclosure () -> TransportEvent) {
        if registry.isObserved { registry.append([event()]) }
    }

    /// Reports several events, in order, with one look at whether somebody observes.
    public func report(contentsOf events: @autoclosure () -> [TransportEvent]) {
        if registry.isObserved { registry.append(events()) }
    }
}
