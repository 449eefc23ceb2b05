package import Waybill

/// The messages of one read, collected by listener so that each consumer is woken once.
///
/// Their arrival is reported to observers before the delivery.
package struct MessageBatch {
    private var lists: [(source: MessageSource, messages: [Message])] = []
    private let events: TransportEventSource
    /// The time of arrival; nil without observers.
    private let time: ContinuousClock.Instant?
    /// Whether there are observers.
    ///
    /// Stored, because it is read for each message.
    private let isObserved: Bool
    private let hasQualities: Bool
    private let onlookers: [MessageSource]
    private var arrivals: [TransportEvent] = []

    /// - Parameters:
    ///   - events: Receives an event for each arrival.
    ///   - hasQualities: Whether the protocol has qualities of service.
    ///   - onlookers: Sources that get a copy of every message.
    package init(
        reportingTo events: TransportEventSource,
        hasQualities: Bool,
        seenBy onlookers: [MessageSource] = []
    ) {
        self.events = events
        self.hasQualities = hasQualities
        self.onlookers = onlookers
        time = events.timestamp
        isObserved = time != nil
    }

    /// Adds a message that needs no acknowledgement.
    package mutating func add(_ message: consuming Message, to listeners: [MessageListener]) {
        if isObserved { note(message) }
        if !onlookers.isEmpty { show(message) }
        // The message is moved to the last listener. Nearly always there is only one, so nothing is copied.
        guard let last = listeners.last else { return }
        for listener in listeners.dropLast() { add(copy message, to: listener.source) }
        add(message, to: last.source)
    }

    /// Adds messages that need no acknowledgement.
    ///
    /// - Parameters:
    ///   - listeners: The listeners that get them.
    ///   - make: Appends the messages.
    package mutating func add(
        to listeners: [MessageListener],
        _ make: (inout [Message]) -> Void
    ) {
        guard !isObserved, onlookers.isEmpty, listeners.count == 1 else {
            var messages: [Message] = []
            make(&messages)
            for message in messages { add(message, to: listeners) }
            return
        }
        let index = index(of: listeners[0].source)
        make(&lists[index].messages)
    }

    /// Adds a message that is acknowledged when all its listeners are done with it.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - listeners: The listeners that get it, at least one.
    ///   - name: The protocol's identification of the delivery.
    ///   - acknowledger: Acknowledges to the peer.
    ///   - manual: Holds the delivery for listeners with manual acknowledgement.
    package mutating func add<Acknowledger: MessageAcknowledger>(
        _ message: consuming Message,
        to listeners: [MessageListener],
        acknowledging name: Acknowledger.Name,
        by acknowledger: Acknowledger,
        manual: ManualDeliveries<Acknowledger>
    ) {
        if isObserved { note(message) }
        if !onlookers.isEmpty { show(message) }
        let delivery = Delivery(name, acknowledger: acknowledger, listeners: listeners.count)
        message.delivery = delivery
        message.isBoundedByPeer = true
        guard let last = listeners.last else { return }
        for listener in listeners.dropLast() {
            var message = copy message
            if listener.isManual { manual.hold(delivery, for: &message, of: listener.source) }
            add(message, to: listener.source)
        }
        if last.isManual { manual.hold(delivery, for: &message, of: last.source) }
        add(message, to: last.source)
    }

    /// Whether there are onlookers, which also get messages without a listener.
    package var isWatched: Bool { !onlookers.isEmpty }

    /// Adds a message without listeners for the onlookers.
    package mutating func show(_ message: borrowing Message) {
        for onlooker in onlookers { add(copy message, to: onlooker) }
    }

    /// Delivers all collected messages.
    package mutating func deliver() {
        if !arrivals.isEmpty {
            events.report(contentsOf: arrivals)
            arrivals.removeAll(keepingCapacity: true)
        }
        // The array is moved out of the list, so that the source can take the messages without a copy.
        for index in lists.indices {
            var messages: [Message] = []
            swap(&messages, &lists[index].messages)
            lists[index].source.deliver(messages)
        }
        lists.removeAll(keepingCapacity: true)
    }

    private mutating func note(_ message: borrowing Message) {
        guard let time else { return }
        arrivals.append(
            .received(
                topic: message.topic,
                byteCount: message.body.count,
                qos: hasQualities ? message.qos : nil,
                at: time
            )
        )
    }

    private mutating func add(_ message: consuming Message, to source: MessageSource) {
        let index = index(of: source)
        lists[index].messages.append(message)
    }

    private mutating func index(of source: MessageSource) -> Int {
        if let index = lists.lastIndex(where: { $0.source === source }) { return index }
        lists.append((source, []))
        return lists.count - 1
    }
}
