/// The source to which a transport reports its events.
///
/// A custom transport has one and returns its ``events``; the provider then reports there, too. Observers never run on
/// the reporting thread, so the reporting code may hold locks.
public final class TransportEventSource: Sendable {
    let registry = EventRegistry()
    /// The label of the client that the events come from; nil without one.
    public let label: String?

    /// Makes a source without observers.
    ///
    /// - Parameter label: The label that each event gets.
    public init(label: String? = nil) {
        self.label = label
    }

    deinit {
        registry.finish()
    }

    /// The sequence that observers iterate over.
    public var events: TransportEvents { TransportEvents(self) }

    /// Whether there is an observer.
    public var isObserved: Bool { registry.isObserved }

    /// The current time if there is an observer; nil otherwise, since nothing needs to be measured then.
    public var timestamp: ContinuousClock.Instant? { isObserved ? .now : nil }

    /// Reports an event; the event is made only if there is an observer.
    ///
    /// Observers see consecutive calls in that order.
    public func report(_ event: @autoclosure () -> TransportEvent) {
        if registry.isObserved { registry.append([labelled(event())]) }
    }

    /// Reports several events in order; they are made only if there is an observer.
    public func report(contentsOf events: @autoclosure () -> [TransportEvent]) {
        if registry.isObserved { registry.append(events().map(labelled)) }
    }

    private func labelled(_ event: TransportEvent) -> TransportEvent {
        guard let label else { return event }
        var event = event
        event.label = label
        return event
    }
}
