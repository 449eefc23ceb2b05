import Testing
import Waybill
import WaybillSession

/// A subscription whose policy drops messages, as it is in every transport.
@Suite("Drops of a subscription", .timeLimit(.minutes(30))) struct DropReportTests {
    @Test("Each drop is told with count, size, topic and reason")
    func drops() async {
        let events = TransportEventSource()
        var iterator = events.events.makeAsyncIterator()
        let cases: [(BufferPolicy.Overflow, TransportEvent.DropReason, bytes: Int)] = [
            (.dropOldest, .oldestWaiting, 3), (.dropNewest, .noRoom, 5), (.fail, .slowConsumer, 5),
        ]
        for (overflow, reason, bytes) in cases {
            let listener = MessageListener(
                .subscribe,
                buffering: BufferPolicy(overflow, messageLimit: 1),
                topic: "t/#",
                events: events,
                onLeave: { _ in },
                pressure: ReadingPressure { _ in }
            )
            let messages = listener.source.messages
            listener.source.deliver(
                ["1", "22", "333"].map { Message(topic: "t", body: Payload($0)) }
            )
            let event = await iterator.next()
            #expect(event?.kind == .dropped && event?.count == 2 && event?.byteCount == bytes)
            #expect(event?.topic == "t/#" && event?.dropReason == reason)
            #expect(messages.droppedCount == 2)
        }
    }
}
