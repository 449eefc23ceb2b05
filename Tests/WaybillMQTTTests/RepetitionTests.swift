import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// Unread messages of QoS 1 when the connection is lost, byte by byte.
@Suite(
    "MQTT transport: unread messages and their repetitions",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct RepetitionTests {
    private static func publish(_ numbers: ClosedRange<UInt8>, isAgain: Bool = false) -> [UInt8] {
        numbers.flatMap { [isAgain ? 0x3A : 0x32, 6, 0, 1, 0x74, 0, $0, 0x30 + $0] as [UInt8] }
    }

    private static func puback(_ number: UInt8) -> [UInt8] { [0x40, 2, 0, number] }

    /// Five messages, of which the consumer takes the first. Then the connection breaks.
    ///
    /// The iterator takes the first three as one batch. The others wait in the buffer.
    private static func first() -> ScriptedByteStream {
        .subscribed(
            .new,
            .expect(go),
            .reply(publish(1...3)),
            .expect(puback(1)),
            .reply(publish(4...5)),
            .finish
        )
    }

    /// A message of QoS 0. The script continues when it arrives.
    private static let go = ("30 05 0001 74 67 6F" as Hex).bytes

    private func texts(
        _ count: Int,
        _ iterator: inout Messages<Message>.AsyncIterator
    ) async throws -> [String] {
        var texts: [String] = []
        while texts.count < count, let message = try await iterator.next() {
            texts.append((message.text ?? "") + (message.isDuplicate ? " again" : ""))
        }
        return texts
    }

    /// Counts the received messages over all connections of a transport, from its making on.
    private struct Arrivals {
        private let transport: MQTTTransport
        private var events: TransportEvents.AsyncIterator
        private var count = 0

        init(at transport: MQTTTransport) {
            self.transport = transport
            events = transport.events.makeAsyncIterator()
        }

        /// Waits for the number of received messages, and until their connection has the session.
        ///
        /// They may arrive before the consumer has taken earlier ones.
        mutating func reach(_ number: Int) async throws {
            while count < number, let event = await events.next() {
                if event.kind == .received { count += 1 }
            }
            try await waitUntil { transport.states.current.isConnected }
        }
    }

    @Test("With the session present the consumer gets the repetitions alone, in order")
    func present() async throws {
        let first = Self.first()
        let second = ScriptedByteStream.accepted(
            .present,
            .reply(Self.publish(2...5, isAgain: true) + Self.publish(6...6)),
            .expect((UInt8(2)...6).flatMap(Self.puback))
        )
        let (transport, provider) = try scripted([first, second]) { $0.session.cleanStart = false }
        var arrivals = Arrivals(at: transport)
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        try await provider.request(.send("go"))
        #expect(try await texts(1, &iterator) == ["1"])
        try await arrivals.reach(10)
        let again = ["2 again", "3 again", "4 again", "5 again", "6"]
        #expect(try await texts(5, &iterator) == again)
        try await waitUntil { second.isComplete }
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
        #expect(try await iterator.next() == nil)
    }

    @Test("Without the session unread messages stay: they do not come again")
    func lost() async throws {
        let first = Self.first()
        let second = ScriptedByteStream.accepted(
            .new,
            // The same SUBSCRIBE with the next identifier.
            .expect(("82 06 0002 0001 74 01" as Hex).bytes),
            .reply(("90 03 0002 01" as Hex).bytes),
            .reply(Self.publish(6...6)),
            .expect(Self.puback(6))
        )
        let (transport, provider) = try scripted([first, second]) { $0.session.cleanStart = false }
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        try await provider.request(.send("go"))
        #expect(try await texts(1, &iterator) == ["1"])
        try await waitUntil { second.hasReached(6) }
        #expect(try await texts(5, &iterator) == ["2", "3", "4", "5", "6"])
        try await waitUntil { second.isComplete }
        await transport.shutdown()
    }

    @Test("Two iterations of one stream each get the repetitions once")
    func twoIterations() async throws {
        let first = Self.first()
        let second = ScriptedByteStream.accepted(
            .present,
            .reply(Self.publish(2...5, isAgain: true)),
            .expect((UInt8(2)...5).flatMap(Self.puback))
        )
        let (transport, provider) = try scripted([first, second]) { $0.session.cleanStart = false }
        var arrivals = Arrivals(at: transport)
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var one = messages.makeAsyncIterator()
        var two = messages.makeAsyncIterator()
        try await provider.request(.send("go"))
        #expect(try await texts(1, &one) == ["1"])
        #expect(try await texts(1, &two) == ["1"])
        try await arrivals.reach(9)
        let again = ["2 again", "3 again", "4 again", "5 again"]
        #expect(try await texts(4, &one) == again)
        #expect(try await texts(4, &two) == again)
        try await waitUntil { second.isComplete }
        await transport.shutdown()
    }

    @Test("A stream that has ended keeps what waits in it: no repetition reaches it")
    func ended() async throws {
        let unsubscribe = ("A2 05 0002 0001 74" as Hex).bytes
        let unsuback = ("B0 02 0002" as Hex).bytes
        let first = ScriptedByteStream.subscribed(
            .new,
            .expect(Self.go),
            .reply(Self.publish(1...3)),
            .expect(Self.puback(1)),
            .expect(unsubscribe),
            .reply(unsuback),
            .expect(Self.go),
            .finish
        )
        let second = ScriptedByteStream.accepted(
            .present,
            .reply(Self.publish(2...3, isAgain: true)),
            .expect((UInt8(2)...3).flatMap(Self.puback))
        )
        let (transport, provider) = try scripted([first, second]) {
            $0.session.cleanStart = false
            $0.session.lateDelivery = .off
        }
        let messages = try await provider.messages(.subscribe(qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        try await provider.request(.send("go"))
        #expect(try await texts(1, &iterator) == ["1"])
        try await provider.request(.command(.unsubscribe, topic: "t"))
        // The connection ends after the stream has.
        try await provider.request(.send("go"))
        try await waitUntil { second.isComplete }
        #expect(try await texts(9, &iterator) == ["2", "3"])
        await transport.shutdown()
    }
}
