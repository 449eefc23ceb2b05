import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// Subscriptions that begin without a connection, because their entries allow it.
@Suite(
    "Every transport: streams that start offline",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionOfflineStartTests {
    private func line(_ topic: String = "room") -> Line {
        .listen(topic) {
            $0.qos = .atLeastOnce
            $0[.waitsForConnection] = true
        }
    }

    @Test(
        "The stream is there at once, and served by the first link that there is",
        arguments: Way.allCases
    )
    func first(way: Way) async throws {
        let bench = try Bench(way)
        bench.dialer.next(.refuse, .silent)
        let others = bench.others
        let messages = try await others.messages(line(), as: String.self)
        var watch = bench.watch()
        await watch.until("waiting (connectionRefused")
        bench.clock.advance(by: Bench.wait)
        // The second attempt gets no answer.
        await watch.until("connecting (attempt 2)")
        await until { bench.timerCount(after: .seconds(10)) > 0 }
        bench.clock.advance(by: .seconds(10))
        await watch.until("waiting (timedOut")
        await bench.comeBack(&watch)
        try await bench.deliver("hello", by: messages)
        #expect(bench.dialer.count == (way == .events ? 4 : 3))
    }

    @Test("Credentials that are refused end it", arguments: Way.allCases)
    func unauthorized(way: Way) async throws {
        let bench = try Bench(way) { $0.users = ["u": "p"] }
        let messages = try await bench.others.messages(line(), as: String.self)
        #expect(await failure { for try await _ in messages {} }?.code == .unauthorized)
        // The state of an event stream changes after its end.
        var watch = bench.watch()
        await watch.until("disconnected (unauthorized")
    }

    @Test("A first attempt cleans the session, if the app wants that (MQTT 5)")
    func cleanStart() async throws {
        let bench = try Bench(.mqtt5) { plan in
            plan.mqtt = { $0.session.expiry = .seconds(60) }
        }
        let messages = try await bench.others.messages(line(), as: String.self)
        var watch = bench.watch()
        await watch.until("connected")
        await bench.lose(&watch)
        await bench.comeBack(&watch)
        let connects = bench.sentences("← CONNECT")
        #expect(connects.map { $0.contains("clean") } == [true, false], "\(connects)")
        withExtendedLifetime(messages) {}
    }

    @Test("Nothing else is needed: it connects by itself", arguments: Way.allCases)
    func byItself(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.others.messages(line(), as: String.self)
        var watch = bench.watch()
        await watch.until("connected")
        await until { bench.count(way.subscribeWord) == 1 }
        try await bench.deliver("hello", by: messages)
        if way.isMQTT { #expect(messages.grantedQoS == .atLeastOnce) }
    }

    @Test("Where connections are made by hand only, it waits for one", arguments: Way.shared)
    func byHand(way: Way) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = { $0.connectsOnDemand = false }
            plan.stomp = { $0.connectsOnDemand = false }
        }
        let noted = bench.record()
        let messages = try await bench.others.messages(line(), as: String.self)
        await untilQuiet()
        #expect(bench.dialer.count == 0)
        try await bench.provider.request(.connect)
        // The SUBSCRIBE is sent before the state becomes "connected".
        #expect(bench.count(way.subscribedWord) == 0 && bench.count(way.subscribeWord) == 1)
        try await bench.deliver("hello", by: messages)
        await until { !noted.all(.subscribed).isEmpty }
        #expect(noted.count(.subscribed) == 1)
    }

    @Test(
        "While the link is away for long, too; and later links have it again",
        arguments: Way.allCases
    )
    func whileAway(way: Way) async throws {
        let hints = ConnectionHints()
        let bench = try Bench(way) { $0.hints = [hints] }
        let stream = try await bench.open()
        var watch = bench.watch()
        bench.dialer.mode = .refuse
        await bench.lose(&watch)
        let messages = try await bench.others.messages(line("lounge"), as: String.self)
        // Longer than the timeout of any other call.
        for _ in 0..<60 {
            bench.clock.advance(by: .seconds(2))
            await untilQuiet()
        }
        bench.dialer.mode = .open
        for _ in 0..<2 {
            let client = bench.lastClient
            // MQTT 3.1.1 puts both filters in one packet. In MQTT 5 each filter needs its own identifier.
            let count = way == .mqtt311 ? 1 : 2
            await until {
                // An attempt that is just failing ignores the hint, so the hint is repeated.
                hints.send(.retryNow)
                return bench.count(way.subscribeWord, from: client + 1) == count
            }
            await watch.until("connected")
            try await bench.deliver("hello", to: "lounge", by: messages)
            bench.clock.advance(by: .seconds(60))
            await bench.lose(&watch)
        }
        withExtendedLifetime(stream) {}
    }

    @Test(
        "A refusal ends it, and the link and other streams go on",
        arguments: [Way.mqtt311, .mqtt5]
    )
    func refused(way: Way) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = { $0.connectsOnDemand = false }
        }
        bench.broker.faults.refusesSubscriptions = ["secret"]
        let good = try await bench.others.messages(line(), as: String.self)
        let bad = try await bench.others.messages(line("secret"), as: String.self)
        try await bench.provider.request(.connect)
        #expect(await failure { for try await _ in bad {} }?.code != nil)
        try await bench.deliver("hello", by: good)
    }

    @Test("Let go of before there is a link, nothing is asked for", arguments: Way.shared)
    func letGo(way: Way) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = { $0.connectsOnDemand = false }
            plan.stomp = { $0.connectsOnDemand = false }
        }
        var messages: Messages<Message>? = try await bench.others.messages(line())
        withExtendedLifetime(messages) {}
        messages = nil
        try await bench.provider.request(.connect)
        try await bench.provider.request(.say("hello"))
        #expect(bench.count(way.subscribeWord) == 0)
    }

    @Test(
        "Shut down before there is a link: it ends; and none begins afterwards",
        arguments: Way.allCases
    )
    func shutDown(way: Way) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = { $0.connectsOnDemand = false }
            plan.stomp = { $0.connectsOnDemand = false }
        }
        bench.dialer.mode = .silent
        let messages = try await bench.others.messages(line())
        await bench.transport.shutdown()
        for try await _ in messages { Issue.record("a message") }
        let error = await failure { try await bench.others.messages(line()) }
        #expect(error?.code == .shutDown)
    }

    @Test(
        "Two of them, and one that waits for its answer, share one filter",
        arguments: Way.allMQTT
    )
    func shared(way: Way) async throws {
        let bench = try Bench(way) { plan in
            plan.mqtt = { $0.connectsOnDemand = false }
        }
        let low = try await bench.others.messages(
            .listen { $0[.waitsForConnection] = true },
            as: String.self
        )
        let high = try await bench.others.messages(line(), as: String.self)
        try await bench.provider.request(.connect)
        let later = try await bench.others.messages(
            .listen { $0.qos = .atLeastOnce },
            as: String.self
        )
        // The second SUBSCRIBE gets the retained messages for the last stream.
        #expect(bench.count("SUBSCRIBE") == 2)
        #expect(low.grantedQoS == .atLeastOnce)
        #expect(later.grantedQoS == .atLeastOnce)
        try await bench.provider.request(.say("hello"))
        for messages in [low, high, later] {
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next() == "hello")
        }
    }

    @Test(
        "Begun during the first connect of another call, it outlives the failure of that call",
        arguments: Way.shared
    )
    func joinsFirstConnect(way: Way) async throws {
        let bench = try Bench(way)
        bench.dialer.next(.silent)
        var watch = bench.watch()
        let provider = bench.provider
        let connect = Call { try await provider.request(.connect) }
        await watch.until("connecting (attempt 1)")
        await until { bench.timerCount(after: .seconds(10)) > 0 }
        let messages = try await bench.others.messages(line(), as: String.self)
        bench.clock.advance(by: .seconds(10))
        // The explicit connect fails all the same.
        #expect(await connect.error()?.code == .timedOut)
        await watch.until("waiting (timedOut")
        await bench.comeBack(&watch)
        try await bench.deliver("hello", by: messages)
    }

    @Test(
        "Begun while a link is being closed, it waits for that, and has the next one",
        arguments: Way.shared.filter(\.waitsToClose)
    )
    func whileClosing(way: Way) async throws {
        let bench = try Bench(way)
        let noted = bench.record()
        let stream = try await bench.open()
        bench.dialer.isolate()
        let provider = bench.provider
        let count = bench.timerCount(after: .seconds(5))
        let disconnect = Call { try await provider.request(.disconnect) }
        await until { bench.timerCount(after: .seconds(5)) > count }
        let others = bench.others
        let call = Call { try await others.messages(self.line("lounge"), as: String.self) }
        await untilQuiet()
        // The subscription is not retried during that time.
        #expect(noted.count(.subscriptionRefused) <= 1)
        bench.clock.advance(by: .seconds(5))
        #expect(await disconnect.error() == nil)
        let messages = try await call.value()
        // After an explicit disconnect, the app must ask for the next connection.
        try await bench.provider.request(.connect)
        try await bench.deliver("hello", to: "lounge", by: messages)
        withExtendedLifetime(stream) {}
    }

    @Test("A refusal of it is reported, once", arguments: [Way.mqtt311, .mqtt5])
    func refusalReported(way: Way) async throws {
        let bench = try Bench(way)
        let noted = bench.record()
        bench.broker.faults.refusesSubscriptions = ["secret"]
        let bad = try await bench.others.messages(line("secret"), as: String.self)
        #expect(await failure { for try await _ in bad {} }?.code != nil)
        await until { !noted.all(.subscriptionRefused).isEmpty }
        #expect(noted.all(.subscriptionRefused).map(\.topic) == ["secret"])
        #expect(noted.all(.subscriptionEnded).isEmpty)
    }

    @Test("What an earlier process subscribed to under the same number goes elsewhere (MQTT 5)")
    func foreignIdentifier() async throws {
        let bench = try Bench(.mqtt5) { plan in
            plan.mqtt = {
                $0.clientIdentifier = "c"
                $0.connectsOnDemand = false
                $0.session.expiry = .seconds(60)
                $0.session.cleanStart = false
            }
        }
        let script = ScriptedByteStream(
            .skip(18),
            .reply(
                [0x20, 3, 1, 0, 0]
                    // To "a", with subscription identifier 1.
                    + [0x30, 6, 0, 1, 0x61, 2, 0x0B, 1]
                    // To "room", with the same identifier.
                    + [0x30, 10, 0, 4] + Array("room".utf8) + [2, 0x0B, 1, 0x78]
            )
        )
        bench.dialer.next(.script(script))
        let messages = try await bench.others.messages(line())
        let provider = bench.provider
        let connect = Call { try await provider.request(.connect) }
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.topic == "room")
        await bench.transport.shutdown()
        _ = await connect.error()
    }

    @Test("A stream that joins a filter offline knows its QoS, or raises it (MQTT)")
    func raises() async throws {
        let bench = try Bench(.mqtt5) { plan in
            plan.mqtt = {
                $0.session.cleanStart = false
                $0.session.expiry = .seconds(60)
            }
        }
        let first = try await bench.others.messages(.listen(), as: String.self)
        #expect(first.grantedQoS == .atMostOnce)
        var watch = bench.watch()
        await bench.lose(&watch)
        let same = try await bench.others.messages(
            .listen { $0[.waitsForConnection] = true },
            as: String.self
        )
        #expect(same.grantedQoS == .atMostOnce)
        let better = try await bench.others.messages(line(), as: String.self)
        await bench.comeBack(&watch)
        #expect(bench.count("SUBSCRIBE") == 2)
        let later = try await bench.others.messages(
            .listen { $0.qos = .atLeastOnce },
            as: String.self
        )
        #expect(bench.count("SUBSCRIBE") == 3)
        for messages in [first, same, better, later] {
            #expect(messages.grantedQoS == .atLeastOnce)
        }
    }

    @Test(
        "A filter that the server has kept is asked for again where more is wanted of it, and only there (MQTT)",
        arguments: [true, false]
    )
    func raisesWhatIsKept(wantsMore: Bool) async throws {
        let bench = try Bench(.mqtt311) { plan in plan.mqtt = { $0.session.cleanStart = false } }
        try await bench.provider.request(.connect)
        let greeting = bench.dialer.writtenBytes
        let first = try await bench.others.messages(.listen())
        var watch = bench.watch()
        await bench.lose(&watch)
        let second = try await bench.others.messages(
            wantsMore ? line() : .listen { $0[.waitsForConnection] = true }
        )
        // The session is present. The SUBSCRIBE gets no answer.
        bench.dialer.next(.say([0x20, 2, 1, 0]))
        bench.clock.advance(by: Bench.wait)
        if wantsMore {
            await until { bench.dialer.count == 2 && bench.dialer.written > greeting.count }
        } else {
            await watch.until("connected")
            await untilQuiet()
        }
        // The SUBSCRIBE after the same CONNECT: `room` with QoS 1.
        var subscribe = Array(bench.dialer.writtenBytes.dropFirst(greeting.count))
        if wantsMore {
            try #require(subscribe.count > 4)
            subscribe.removeSubrange(2..<4)
        }
        #expect(subscribe == (wantsMore ? [0x82, 9, 0, 4] + Array("room".utf8) + [1] : []))
        withExtendedLifetime((first, second)) {}
    }
}
