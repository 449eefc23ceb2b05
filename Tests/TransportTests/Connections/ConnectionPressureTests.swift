import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Design 5.3: a slow app, and the messages that it does not take.
@Suite(
    "Every transport: back-pressure (design 5.3)",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionPressureTests {
    /// The broker's log word for a message to a client.
    private func messageWord(_ way: Way) -> String { way.isMQTT ? "→ PUBLISH" : "→ MESSAGE" }

    /// The next messages of a stream.
    private func next(
        _ count: Int,
        _ iterator: inout Messages<String>.AsyncIterator
    ) async throws -> [String] {
        var texts: [String] = []
        while texts.count < count, let text = try await iterator.next() { texts.append(text) }
        return texts
    }

    /// Has another client send numbers, each acknowledged.
    private func speak(_ numbers: Range<Int>, _ bench: Bench, length: Int = 0) async throws {
        let speaker = try bench.makeSpeaker()
        for number in numbers {
            let text = "\(number)" + String(repeating: " ", count: length)
            try await speaker.request(.say(text) { $0.qos = .atLeastOnce })
        }
    }

    // MARK: Acknowledged when taken

    @Test("5.3: QoS 2 is acknowledged when it was taken, in its four steps", arguments: Way.allMQTT)
    func exactlyOnce(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.others.messages(
            .listen { $0.qos = .exactlyOnce },
            as: String.self
        )
        try await bench.others.request(.say("hello") { $0.qos = .exactlyOnce })
        // The four steps between the sender and the broker are complete.
        #expect(bench.sentences("→ PUBCOMP").count == 1)
        await until { bench.sentences("→ PUBLISH").count == 1 }
        await untilQuiet()
        #expect(bench.sentences("← PUBREC").isEmpty)
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
        await until { bench.sentences("← PUBCOMP").count == 1 }
        #expect(bench.sentences("← PUBREC").count == 1 && bench.sentences("→ PUBREL").count == 1)
        #expect(bench.sentences("→ PUBLISH").count == 1)
    }

    @Test(
        "5.3: a slow app slows the broker: no more are under way than may be, until one is taken (MQTT 5)",
        arguments: [Way.mqtt5, .mqttOverWebSocket],
        [QoS.atLeastOnce, .exactlyOnce]
    )
    func receiveMaximum(way: Way, qos: QoS) async throws {
        let bench = try Bench(way) { $0.mqtt = { $0.limits.receiveMaximum = 3 } }
        let messages = try await bench.others.messages(.listen { $0.qos = qos }, as: String.self)
        let speaker = try bench.makeSpeaker()
        for number in 0..<10 {
            try await speaker.request(.say("\(number)") { $0.qos = qos })
        }
        await until { bench.sentences("→ PUBLISH").count == 3 }
        await untilQuiet()
        var iterator = messages.makeAsyncIterator()
        for number in 0..<10 {
            #expect(bench.sentences("→ PUBLISH").count == min(3 + number, 10))
            #expect(try await iterator.next() == "\(number)")
            // Each message that the app takes makes room for another one.
            let expected = min(4 + number, 10)
            await until { bench.sentences("→ PUBLISH").count >= expected }
        }
    }

    // MARK: Policies

    @Test(
        "5.3: the oldest go, or the newest, by the policy: counted, reported, and the rest comes in order",
        arguments: Way.allCases,
        [BufferPolicy.Overflow.dropOldest, .dropNewest]
    )
    func dropping(way: Way, overflow: BufferPolicy.Overflow) async throws {
        let bench = try Bench(way)
        let noted = bench.record()
        let messages = try await bench.others.messages(
            .listen { $0[.buffering] = BufferPolicy(overflow, messageLimit: 4) },
            as: String.self
        )
        try await speak(0..<10, bench)
        await until { noted.messageCount(.received) == 10 }
        await until { noted.messageCount(.dropped) == 6 }
        #expect(messages.droppedCount == 6)
        let reason: TransportEvent.DropReason =
            overflow == .dropOldest ? .oldestWaiting : .noRoom
        #expect(noted.all(.dropped).allSatisfy { $0.dropReason == reason && $0.topic == "room" })
        var iterator = messages.makeAsyncIterator()
        let kept = overflow == .dropOldest ? 6..<10 : 0..<4
        #expect(try await next(4, &iterator) == kept.map { "\($0)" })
        // Later messages are not affected.
        try await speak(10..<11, bench)
        #expect(try await iterator.next() == "10")
    }

    @Test(
        "5.3: bytes are bounded as messages are",
        arguments: Way.allCases
    )
    func byteLimit(way: Way) async throws {
        let bench = try Bench(way)
        let noted = bench.record()
        let messages = try await bench.others.messages(
            .listen { $0[.buffering] = BufferPolicy(.dropNewest, byteLimit: 350) },
            as: String.self
        )
        try await speak(0..<5, bench, length: 99)
        await until { noted.messageCount(.dropped) == 2 }
        #expect(noted.all(.dropped).reduce(0) { $0 + ($1.byteCount ?? 0) } == 200)
        var iterator = messages.makeAsyncIterator()
        let texts = try await next(3, &iterator)
        #expect(texts.map { $0.prefix(1) } == ["0", "1", "2"])
        #expect(messages.droppedCount == 2)
    }

    @Test(
        "5.3: that subscription fails with `slowConsumer`, and no other",
        arguments: Way.allCases
    )
    func failing(way: Way) async throws {
        let bench = try Bench(way)
        let noted = bench.record()
        let slow = try await bench.others.messages(
            .listen { $0[.buffering] = BufferPolicy(.fail, messageLimit: 4) },
            as: String.self
        )
        let other = try await bench.others.messages(.listen("lounge"), as: String.self)
        try await speak(0..<5, bench)
        // The subscription ends although the app still holds the stream.
        await until { noted.count(.subscriptionEnded) == 1 }
        #expect(noted.all(.subscriptionEnded)[0].topic == "room")
        let error = await failure { for try await _ in slow {} }
        #expect(error?.code == .slowConsumer)
        try await bench.makeSpeaker().request(.say("here", to: "lounge") { $0.qos = .atLeastOnce })
        var iterator = other.makeAsyncIterator()
        #expect(try await iterator.next() == "here")
        #expect(bench.dialer.count == (way == .events ? 2 : 1))
    }

    @Test(
        "5.3: on request, and by default where a stream has a connection of its own, the peer is held back",
        arguments: Way.allCases
    )
    func holdingBack(way: Way) async throws {
        // Event streams hold back by default. Only their limit is changed here.
        let bench = try Bench(way) { $0.events = { $0.buffering.messageLimit = 4 } }
        let noted = bench.record()
        let line = Line.listen {
            if way != .events {
                $0[.buffering] = BufferPolicy(.holdBack, messageLimit: 4)
            }
        }
        let messages = try await bench.others.messages(line, as: String.self)
        let count = 40
        // Far more than one read takes.
        try await speak(0..<count, bench, length: 60_000)
        await untilQuiet()
        let received = noted.messageCount(.received)
        #expect(received < count / 2, "\(received)")
        #expect(noted.all(.dropped).isEmpty)
        var iterator = messages.makeAsyncIterator()
        for number in 0..<count {
            let text = try await iterator.next()
            #expect(text?.prefix { $0 != " " } == "\(number)")
        }
        #expect(messages.droppedCount == 0 && bench.dialer.count == 1)
    }

    // Outside, for the time that so many bytes take in a simulation.
    @Test(
        "5.3: 16 MiB of bodies wait by default, and no more",
        .outsideSimulation,
        arguments: [Way.mqtt5, .stomp]
    )
    func defaultBytes(way: Way) async throws {
        let bench = try Bench(way)
        let noted = bench.record()
        let messages = try await bench.others.messages(.listen())
        // Each message has the maximum length, with its topic. 16 of them fit into the buffer.
        for number in 0..<17 {
            try await speak(number..<(number + 1), bench, length: 1_048_000)
            await until { noted.messageCount(.received) > number }
        }
        var iterator = messages.makeAsyncIterator()
        if way.isMQTT {
            await until { messages.droppedCount == 1 }
            let first = try await iterator.next()?.text
            #expect(first?.prefix { $0 != " " } == "1")
        } else {
            // The received messages are not yet delivered to the stream.
            await until { noted.count(.subscriptionEnded) == 1 }
            let error = await failure { while try await iterator.next() != nil {} }
            #expect(error?.code == .slowConsumer)
        }
    }

    @Test(
        "5.3: by default the oldest of QoS 0 go, and STOMP `auto` fails",
        arguments: Way.shared
    )
    func defaults(way: Way) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = { $0.buffering.messageLimit = 4 }
            plan.stomp = { $0.buffering.messageLimit = 4 }
        }
        let noted = bench.record()
        let messages = try await bench.others.messages(.listen(), as: String.self)
        try await speak(0..<10, bench)
        if way.isSTOMP {
            await until { noted.count(.subscriptionEnded) == 1 }
            let error = await failure { for try await _ in messages {} }
            #expect(error?.code == .slowConsumer)
        } else {
            await until { noted.messageCount(.dropped) == 6 }
            var iterator = messages.makeAsyncIterator()
            #expect(try await next(4, &iterator) == ["6", "7", "8", "9"])
        }
    }

    @Test(
        "5.3: 16,384 messages may wait by default, and not one more",
        .outsideSimulation,
        arguments: [Way.mqtt5, .stomp]
    )
    func defaultLimit(way: Way) async throws {
        let bench = try Bench(way)
        let noted = bench.record()
        let messages = try await bench.others.messages(.listen(), as: String.self)
        let speaker = try bench.makeSpeaker()
        for number in 0...16_384 { try await speaker.request(.say("\(number)")) }
        if way.isSTOMP {
            await until { noted.count(.subscriptionEnded) == 1 }
        } else {
            await until { messages.droppedCount > 0 }
        }
        var count = 0
        let error = await failure {
            for try await text in messages {
                #expect(text == "\(way.isSTOMP ? count : count + 1)")
                count += 1
                if !way.isSTOMP, count == 16_384 { break }
            }
        }
        #expect(count == 16_384)
        #expect(error?.code == (way.isSTOMP ? .slowConsumer : nil))
        #expect(messages.droppedCount == 1)
        #expect(BufferPolicy(.fail).byteLimit == 16 << 20)
    }
}
