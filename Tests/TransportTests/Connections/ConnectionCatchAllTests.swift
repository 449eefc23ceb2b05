import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Streams of all messages, whatever their topic.
@Suite(
    "Every transport: all messages",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionCatchAllTests {
    @Test(
        "Messages of every subscription come, in order, beside what the subscribers get",
        arguments: Way.allCases
    )
    func everything(way: Way) async throws {
        let bench = try Bench(way)
        let all = try bench.provider.allMessages()
        let room = try await bench.open("room")
        let lounge = try await bench.provider.messages(.listen("lounge"), as: String.self)
        for number in 0..<4 {
            let topic = number % 2 == 0 ? "room" : "lounge"
            try await bench.provider.request(.say("\(number)", to: topic))
            var iterator = (number % 2 == 0 ? room : lounge).makeAsyncIterator()
            #expect(try await iterator.next() == "\(number)")
        }
        var iterator = all.makeAsyncIterator()
        for number in 0..<4 {
            let message = try await iterator.next()
            #expect(message?.text == "\(number)")
            #expect(message?.topic == (number % 2 == 0 ? "room" : "lounge"))
        }
        await bench.end()
        #expect(try await iterator.next() == nil)
    }

    @Test("It outlives the loss of the link, and its end by hand", arguments: Way.allCases)
    func outlives(way: Way) async throws {
        let bench = try Bench(way)
        let all = try bench.provider.allMessages()
        var iterator = all.makeAsyncIterator()
        var messages: Messages<String>? = try await bench.open()
        var watch = bench.watch()
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        try await bench.provider.request(.say("one"))
        #expect(try await iterator.next()?.text == "one")
        try await bench.provider.request(.disconnect)
        messages = try await bench.open()
        try await bench.provider.request(.say("two"))
        #expect(try await iterator.next()?.text == "two")
        withExtendedLifetime(messages) {}
    }

    @Test("It holds up no acknowledgement, and takes part in none", arguments: Way.shared)
    func acknowledgements(way: Way) async throws {
        let bench = try Bench(way)
        let all = try bench.provider.allMessages()
        let messages = try await bench.open()
        try await bench.provider.request(.say("hello"))
        var iterator = all.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "hello")
        await untilQuiet()
        let word = way.isMQTT ? "PUBACK" : "ACK"
        // The subscriber has not taken the message, so it is not acknowledged.
        #expect(bench.count(word) == 0)
        var taker = messages.makeAsyncIterator()
        #expect(try await taker.next() == "hello")
        try await bench.provider.request(.say("more"))
        _ = try await taker.next()
        // It is acknowledged although the stream of all messages has not read it.
        await until { bench.count(word) == 2 }
        withExtendedLifetime(all) {}
    }

    @Test("Messages without a subscription come, too (MQTT)")
    func unclaimed() async throws {
        let script = ScriptedByteStream(
            .skip(15),
            .reply([0x20, 2, 0, 0, 0x32, 7, 0, 1, 0x7A, 0, 9, 0x68, 0x69]),
            .expect([0x40, 2, 0, 9])
        )
        let bench = try Bench(.mqtt311) { plan in
            plan.mqtt = { $0.clientIdentifier = "c" }
        }
        bench.dialer.next(.script(script))
        let all = try bench.provider.allMessages()
        try await bench.provider.request(.connect)
        var iterator = all.makeAsyncIterator()
        let message = try await iterator.next()
        #expect(message?.topic == "z" && message?.text == "hi")
        await until { script.isComplete }
        #expect(script.failures == [])
    }

    @Test(
        "Too slow, it loses the oldest, which is told; it cannot hold back",
        arguments: Way.allCases
    )
    func bounds(way: Way) async throws {
        let bench = try Bench(way)
        let noted = bench.record()
        let error = await failure { try bench.provider.allMessages(BufferPolicy(.holdBack)) }
        #expect(error?.code == .unsupported)
        let all = try bench.provider.allMessages(BufferPolicy(.dropOldest, messageLimit: 2))
        let messages = try await bench.open()
        var taker = messages.makeAsyncIterator()
        for number in 0..<5 {
            try await bench.provider.request(.say("\(number)"))
            #expect(try await taker.next() == "\(number)")
        }
        var iterator = all.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "3")
        #expect(try await iterator.next()?.text == "4")
        #expect(all.droppedCount == 3)
        await until { noted.messageCount(.dropped) == 3 }
        await bench.end()
        let late = await failure { try bench.provider.allMessages() }
        #expect(late?.code == .shutDown)
    }

    @Test("The mock delivers every pushed message, with and without a subscription")
    func mock() async throws {
        struct Tagging: Interceptor {
            func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
                var message = message
                message.headers = ["seen": "yes"]
                return message
            }
        }
        let mock = MockTransport().expect(.subscribe)
        let provider = Provider<Talk>(transport: mock).intercepted(Tagging())
        let all = try provider.allMessages()
        let messages = try await provider.messages(.listen("room"))
        #expect(mock.push(Payload("one"), to: "room") == 1)
        #expect(mock.push(Payload("two"), to: "nobody") == 0)
        var iterator = all.makeAsyncIterator()
        for text in ["one", "two"] {
            let message = try await iterator.next()
            #expect(message?.text == text && message?.headers == ["seen": "yes"])
        }
        await mock.shutdown()
        #expect(try await iterator.next() == nil)
        withExtendedLifetime(messages) {}
    }
}
