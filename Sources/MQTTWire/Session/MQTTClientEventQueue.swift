import WireCore

/// The events that the driver of a client's core has not taken, in order.
///
/// The messages that arrive one after the other in one read are one event (``MQTTArrivals``). Any other event ends
/// their run, so that it is reported behind them.
struct MQTTClientEventQueue: Sendable {
    private var events: [MQTTClientEvent] = []
    /// The messages since the last event.
    private var arrivals = MQTTArrivals()
    /// The number of events without ``arrivals``, with each message of them counted.
    private var reportedCount = 0

    var isEmpty: Bool { events.isEmpty && arrivals.isEmpty }

    /// The number of events, with each message counted.
    var count: Int { reportedCount + arrivals.count }

    /// Adds an event behind the messages that arrived before it.
    mutating func append(_ event: MQTTClientEvent) {
        endArrivals()
        reportedCount += 1
        events.append(event)
    }

    /// Adds a message without properties of its own, which is still at the front of the buffer.
    mutating func append(
        _ publish: MQTTPlainPublish,
        _ decoder: borrowing MQTTPacketDecoder,
        _ receipt: MQTTDeliveryReceipt?,
        in buffer: ReceiveBuffer
    ) {
        arrivals.append(publish, decoder, receipt, in: buffer)
    }

    /// Adds a message with properties, whose payload is a slice of the buffer.
    mutating func append(
        _ publish: MQTTPublish,
        _ receipt: MQTTDeliveryReceipt?,
        in buffer: ReceiveBuffer
    ) {
        arrivals.append(publish, receipt, in: buffer)
    }

    /// Makes an event of the messages since the last one.
    mutating func endArrivals() {
        guard !arrivals.isEmpty else { return }
        reportedCount += arrivals.count
        events.append(.messages(arrivals))
        arrivals = MQTTArrivals()
    }

    mutating func takeAll() -> [MQTTClientEvent] {
        endArrivals()
        reportedCount = 0
        defer { events = [] }
        return events
    }
}
