package import Waybill

/// Takes a number of messages, in order.
package func take(_ count: Int, _ messages: Messages<Message>) async throws -> [Message] {
    var taken: [Message] = []
    for try await message in messages {
        taken.append(message)
        if taken.count == count { break }
    }
    return taken
}

/// Takes the texts of a number of messages, in order.
package func texts(_ count: Int, _ messages: Messages<Message>) async throws -> [String] {
    try await take(count, messages).map { $0.text ?? "" }
}

/// Takes events up to the first of a kind.
package func take(
    to last: TransportEvent.Kind,
    _ iterator: inout TransportEvents.AsyncIterator
) async -> [TransportEvent] {
    var events: [TransportEvent] = []
    while let event = await iterator.next() {
        events.append(event)
        if event.kind == last { break }
    }
    return events
}
