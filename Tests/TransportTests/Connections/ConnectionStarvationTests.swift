import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Consumers that do not take: what their policies may drop never stops the connection (design 5.8).
@Suite(
    "Shared connections: consumers that do not take",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionStarvationTests {
    private static let limit = 256 << 10
    private static let kilobyte = String(repeating: "x", count: 1_024)

    private func bench(_ way: Way, _ overflow: BufferPolicy.Overflow) throws -> Bench {
        try Bench(way) { plan in
            plan.mqtt = {
                $0.limits.memory = Self.limit
                $0.buffering = BufferPolicy(overflow)
            }
            plan.stomp = {
                $0.limits.memory = Self.limit
                $0.buffering = BufferPolicy(overflow)
            }
        }
    }

    /// Reads a stream to its end in a task of its own.
    private static func reading(_ messages: Messages<String>) -> (Kept<Int>, Task<Void, Never>) {
        let count = Kept(0)
        let task = Task {
            var iterator = messages.makeAsyncIterator()
            while (try? await iterator.next()) != nil { count.withLock { $0 += 1 } }
        }
        return (count, task)
    }

    @Test(
        "Three unread subscriptions leave room for the one that is read, and for calls",
        arguments: Way.shared,
        [BufferPolicy.Overflow.dropOldest, .dropNewest, .fail]
    )
    func unread(way: Way, overflow: BufferPolicy.Overflow) async throws {
        let bench = try bench(way, overflow)
        let noted = bench.record()
        var unread: [Messages<String>] = []
        for topic in ["a", "b", "c"] {
            unread.append(try await bench.others.messages(.listen(topic)))
        }
        let read = try await bench.others.messages(.listen("room"), as: String.self)
        let (count, task) = Self.reading(read)
        let speaker = try bench.makeSpeaker()
        for _ in 0..<100 {
            for topic in ["a", "b", "c", "room"] {
                try await speaker.request(.say(Self.kilobyte, to: topic) { $0.qos = .atLeastOnce })
            }
        }
        try await bench.others.request(.say("own", to: "other") { $0.qos = .atLeastOnce })
        await until { count.withLock { $0 } == 100 }
        #expect(noted.all(.dropped).allSatisfy { $0.topic != "room" })
        #expect(noted.count(.readingHeld) == 0 && noted.count(.disconnected) == 0)
        if overflow == .fail {
            let ends = noted.all(.subscriptionEnded)
            #expect(!ends.isEmpty && ends.allSatisfy { $0.error?.code == .slowConsumer })
        } else {
            // All of it is told: what an unread stream still has was not dropped.
            let dropped = noted.messageCount(.dropped)
            #expect(dropped >= 300 - Self.limit / 1_024 && dropped < 300)
        }
        task.cancel()
        withExtendedLifetime(unread) {}
    }

    @Test("Four unread streams of all messages stop nothing", arguments: Way.shared)
    func catchAll(way: Way) async throws {
        let bench = try bench(way, .dropOldest)
        let noted = bench.record()
        let unread = try (0..<4).map { _ in try bench.provider.allMessages() }
        let read = try await bench.others.messages(.listen("room"), as: String.self)
        let (count, task) = Self.reading(read)
        let speaker = try bench.makeSpeaker()
        for _ in 0..<300 {
            try await speaker.request(.say(Self.kilobyte) { $0.qos = .atLeastOnce })
        }
        try await bench.others.request(.say("own", to: "other") { $0.qos = .atLeastOnce })
        await until { count.withLock { $0 } == 300 }
        #expect(noted.count(.readingHeld) == 0)
        task.cancel()
        withExtendedLifetime(unread) {}
    }

    @Test(
        "Unread messages of QoS 0 do not keep those of QoS 1 from being read",
        arguments: Way.allMQTT
    )
    func mixed(way: Way) async throws {
        let bench = try bench(way, .dropOldest)
        let noted = bench.record()
        let unread = try await bench.others.messages(.listen("a"), as: String.self)
        let read = try await bench.others.messages(
            .listen("room") { $0.qos = .atLeastOnce },
            as: String.self
        )
        let speaker = try bench.makeSpeaker()
        for _ in 0..<300 {
            for topic in ["a", "room"] {
                try await speaker.request(.say(Self.kilobyte, to: topic) { $0.qos = .atLeastOnce })
            }
        }
        await untilQuiet()
        // The account is full of both. As soon as the consumer comes, the connection goes on.
        let (count, task) = Self.reading(read)
        await until { count.withLock { $0 } == 300 }
        try await bench.others.request(.say("own", to: "other") { $0.qos = .atLeastOnce })
        #expect(noted.all(.dropped).allSatisfy { $0.topic == "a" })
        task.cancel()
        withExtendedLifetime(unread) {}
    }

    @Test(
        "Messages that cannot be dropped hold reading: it is told, and a call that waits too long ends the largest",
        arguments: [Way.mqtt5, .mqtt311, .stomp]
    )
    func held(way: Way) async throws {
        let bench = try bench(way, .holdBack)
        let noted = bench.record()
        let change: (inout EntryCommand) -> Void = {
            if way.isMQTT { $0.qos = .atLeastOnce }
            // Small, so that one consumer holds the peer back and not the account.
            if way.isSTOMP { $0[.buffering] = BufferPolicy(.holdBack, messageLimit: 16) }
        }
        let forgotten = try await bench.others.messages(.listen("a", change), as: String.self)
        let other = try await bench.others.messages(.listen("b", change), as: String.self)
        let speaker = try bench.makeSpeaker()
        for _ in 0..<400 {
            try await speaker.request(.say(Self.kilobyte, to: "a") { $0.qos = .atLeastOnce })
        }
        try await speaker.request(.say("hello", to: "b") { $0.qos = .atLeastOnce })
        await untilQuiet()
        #expect(noted.count(.readingHeld) == 0)
        bench.clock.advance(by: .seconds(5))
        await until { noted.count(.readingHeld) == 1 }
        #expect(noted.all(.readingHeld)[0].topic == "a")
        // A call with a shorter limit of its own ends no stream.
        let hasty = Call {
            try await bench.others.request(
                .say("own", to: "other") {
                    $0.qos = .atLeastOnce
                    $0[.timeout] = .seconds(1)
                }
            )
        }
        await untilQuiet()
        bench.clock.advance(by: .seconds(1))
        #expect(await hasty.error()?.code == .timedOut)
        #expect(noted.count(.readingResumed) == 0)
        let call = Call {
            try await bench.others.request(.say("own", to: "other") { $0.qos = .atLeastOnce })
        }
        await untilQuiet()
        bench.clock.advance(by: way.sendLimit)
        #expect(await call.error()?.code == .timedOut)
        await until { noted.count(.readingResumed) == 1 }
        let error = await failure { for try await _ in forgotten {} }
        #expect(error?.code == .slowConsumer && error?.topic == "a")
        // The others go on.
        var iterator = other.makeAsyncIterator()
        #expect(try await iterator.next() == "hello")
        try await bench.others.request(.say("own", to: "other") { $0.qos = .atLeastOnce })
    }
}
