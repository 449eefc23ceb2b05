package import Waybill

/// Messages on their way to their listeners, gathered so that each consumer is woken once, and reported before.
package struct MessageBatch {
    private var lists: [(source: MessageSource, messages: [Message])] = []
    private let events: TransportEventSource
    /// When they have come; nil when nobody wants to know.
    private let time: ContinuousClock.Instant?
    /// The same question, asked for each message.
    private let isObserved: Bool
    private let hasQualities: Bool
    private let onlookers: [MessageSource]
    private var arrivals: [TransportEvent] = []

    /// - Parameters:
    ///   - events: Where it is reported what has come.
    ///   - hasQualities: Whether the protocol has qualities of service.
    ///   - onlookers: Who gets a copy of every message.
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
        // Moved to the last of them; nearly always there is one.
        guard let last = listeners.last else { return }
        for listener in listeners.dropLast() { add(copy message, to: listener.source) }
        add(message, to: last.source)
    }

    /// Adds a message that is settled when all its listeners are done with it.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - listeners: Who gets it, at least one.
    ///   - name: What names its delivery to the peer.
    ///   - settler: Who tells the peer.
    ///   - manual: Where it waits for those who acknowledge by hand.
    package mutating func add<Settler: DeliverySettler>(
        _ message: consuming Message,
        to listeners: [MessageListener],
        settling name: Settler.Name,
        by settler: Settler,
        manual: ManualDeliveries<Settler>
    ) {
        if isObserved { note(message) }
        if !onlookers.isEmpty { show(message) }
        let delivery = Delivery(name, settler: settler, listeners: listeners.count)
        message.delivery = delivery
        guard let last = listeners.last else { return }
        for listener in listeners.dropLast() {
            var message = copy message
            if listener.isManual { manual.hold(delivery, for: &message) }
            add(message, to: listener.source)
        }
        if last.isManual { manual.hold(delivery, for: &message) }
        add(message, to: last.source)
    }

    /// Whether anybody looks on: a message that nobody listens for is to be shown then.
    package var isWatched: Bool { !onlookers.isEmpty }

    /// Shows a message that nobody listens for to those who look on.
    package mutating func show(_ message: borrowing Message) {
        for onlooker in onlookers { add(copy message, to: onlooker) }
    }

    /// Hands over all that was gathered.
    package mutating func deliver() {
        if !arrivals.isEmpty {
            events.report(contentsOf: arrivals)
            arrivals.removeAll(keepingCapacity: true)
        }
        // Handed over, and not only lent: who takes the messages can then do so without a copy.
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
        if let index = lists.lastIndex(where: { $0.source === source }) {
            lists[index].messages.append(message)
        } else {
            lists.append((source, [message]))
        }
    }
}
