import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

@Suite("MQTT transport over the loopback broker", .inSimulation, .timeLimit(.minutes(30)))
struct TransportTests {
    @Test(
        "Every quality both ways, connecting on demand",
        arguments: ways,
        QoS.allCases
    )
    func qualities(way: Way, qos: QoS) async throws {
        let fixture = try Fixture(way.service)
        let (transport, provider) = try fixture.provider(way.version)
        let messages = try await provider.messages(.subscribe(qos: qos))
        #expect(messages.grantedQoS == qos)
        for number in 0..<50 { try await provider.request(.send("\(number)", qos: qos)) }
        #expect(try await texts(50, messages) == (0..<50).map { "\($0)" })
        await fixture.end(transport)
    }

    @Test("Sending QoS 0 without end lets the actor's other tasks run") @MainActor
    func turns() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        try await provider.request(.connect)
        let count = try await callsBeforeNeighbour(atMost: 10_000) { number in
            try await provider.request(.send("\(number)"))
        }
        #expect(count == 256)
        await fixture.end(transport)
    }

    @Test(
        "A thousand sends of QoS 0 do not hop off the caller's actor, and let others run there at each 256th"
    )
    func noHops() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        try await provider.request(.connect)
        let hops = try await CountingActor().hops { _ in
            for number in 0..<1_000 { try await provider.request(.send("\(number)")) }
        }
        // Every yield counts twice: once for the task that yields, and once for its resumption.
        #expect(hops == 6)
        // A send that waits for its acknowledgement leaves the actor and comes back at most once.
        let waiting = try await CountingActor().hops { _ in
            for _ in 0..<100 { try await provider.request(.send("x", qos: .atLeastOnce)) }
        }
        #expect(waiting <= 100)
        // Proves that the executor counts hops.
        #expect(await CountingActor().hops { _ in await Task.yield() } > 0)
        await fixture.end(transport)
    }

    #if os(Linux)
        @Test("At the end, streams end in the order in which they were subscribed to")
        func endingOrder() async throws {
            let fixture = try Fixture()
            let (transport, provider) = try fixture.provider()
            var streams: [Messages<Message>] = []
            for number in 0..<100 {
                streams.append(try await provider.messages(.subscribe("t/\(number)")))
            }
            let order = WakingOrder()
            order.begin(100) { [streams] number in
                do { for try await _ in streams[number] {} } catch {}
            }
            await transport.shutdown()
            let woken = try await order.woken
            #expect(woken == Array(0..<100))
            await fixture.broker.stop()
        }
    #endif

    @Test("All that MQTT 5 carries beside the body goes there and back")
    func properties() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(.subscribe())
        let entry = MQTTEntry.command(
            .send(qos: .atLeastOnce, .expiry(.seconds(90))),
            topic: "t",
            body: .json(["a": 1]),
            headers: ["b": "1", "a": "2", "b": "3"]
        )
        try await provider.request(entry)
        var iterator = messages.makeAsyncIterator()
        let message = try #require(try await iterator.next())
        #expect(message.contentType == "application/json")
        #expect(message.headers == ["b": "1", "a": "2", "b": "3"])
        #expect(message[.expiry] == .seconds(90))
        #expect(message.text == #"{"a":1}"#)
        #expect(
            message.qos == .atLeastOnce && !message.isRetained && message.id == nil
        )
        await fixture.end(transport)
    }

    @Test("Two subscribers of a filter share one subscription; the last to leave sends UNSUBSCRIBE")
    func sharing() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let first = try await provider.messages(.subscribe("a/+", qos: .atLeastOnce))
        let second = try await provider.messages(.subscribe("a/+", qos: .atLeastOnce))
        try await provider.request(.send("x", to: "a/b", qos: .atLeastOnce))
        #expect(try await texts(1, first) == ["x"])
        #expect(try await texts(1, second) == ["x"])
        first.cancel()
        try await provider.request(.send("y", to: "a/b", qos: .atLeastOnce))
        #expect(try await texts(1, second) == ["y"])
        second.cancel()
        try await provider.request(.send("z", to: "a/b", qos: .atLeastOnce))
        // The second SUBSCRIBE gets the retained messages for the second stream.
        #expect(fixture.lines.count("← SUBSCRIBE") == 2)
        #expect(fixture.lines.count("← UNSUBSCRIBE") == 1)
        await fixture.end(transport)
    }

    @Test("A higher QoS is requested with a new SUBSCRIBE, for all streams of the filter")
    func raising() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let low = try await provider.messages(.subscribe(qos: .atMostOnce))
        let high = try await provider.messages(.subscribe(qos: .exactlyOnce))
        try await provider.request(.send("x", qos: .exactlyOnce))
        for messages in [low, high] {
            var iterator = messages.makeAsyncIterator()
            #expect(try await iterator.next()?.qos == .exactlyOnce)
        }
        #expect(fixture.lines.count("← SUBSCRIBE") == 2)
        await fixture.end(transport)
    }

    @Test("Overlapping filters each get a message once", arguments: ways)
    func overlapping(way: Way) async throws {
        let fixture = try Fixture(way.service)
        let (transport, provider) = try fixture.provider(way.version)
        var streams: [Messages<Message>] = []
        for filter in ["a/#", "a/+", "a/b", "+/b"] {
            streams.append(try await provider.messages(.subscribe(filter)))
        }
        for text in ["1", "2", "end"] {
            try await provider.request(.send(text, to: "a/b", qos: .exactlyOnce))
        }
        for stream in streams { #expect(try await texts(3, stream) == ["1", "2", "end"]) }
        await fixture.end(transport)
    }

    @Test("Unsubscribing ends every stream of the filter", arguments: ways)
    func unsubscribe(way: Way) async throws {
        let fixture = try Fixture(way.service)
        let (transport, provider) = try fixture.provider(way.version)
        let messages = try await provider.messages(.subscribe())
        try await provider.request(.command(.unsubscribe, topic: "t"))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == nil)
        let again = try await provider.request(.command(.unsubscribe, topic: "t"))
        if way.version == .v5 { #expect(again.reason == "No subscription existed (0x11)") }
        await fixture.end(transport)
    }

    @Test("A refused subscription and a refused connection are typed errors", arguments: ways)
    func refusals(way: Way) async throws {
        let fixture = try Fixture(way.service)
        let version = way.version
        fixture.broker.faults.refusesSubscriptions = ["secret/#"]
        let (transport, provider) = try fixture.provider(version)
        let error = await expectError(version == .v5 ? .unauthorized : .rejected) {
            try await provider.messages(.subscribe("secret/#"))
        }
        #expect(error?.topic == "secret/#")
        #expect(error?.peerReason?.isEmpty == false)
        fixture.broker.faults.refusesSubscriptions = []
        _ = try await provider.messages(.subscribe("secret/#"))
        await transport.shutdown()

        for (refusal, code) in [
            (LoopbackFaults.Refusal.badUserNameOrPassword, WaybillError.Code.unauthorized),
            (.notAuthorized, .unauthorized), (.serverUnavailable, .connectionRefused),
            (.clientIdentifierNotValid, .rejected),
        ] {
            fixture.broker.faults.refusesConnections = refusal
            let refused = try fixture.transport(version)
            await expectError(code) {
                try await Provider<MQTTEntry>(transport: refused).request(.connect)
            }
            await refused.shutdown()
        }
        await fixture.broker.stop()
    }

    @Test("Credentials go with CONNECT, from the URL, the configuration or the entry")
    func credentials() async throws {
        let fixture = try Fixture { $0.credentials = ["ada": "secret"] }
        let url = "mqtt://ada:secret@127.0.0.1:\(fixture.broker.port)"
        let byURL = try MQTTTransport(url: url) { $0.timeouts.connect = .seconds(120) }
        try await Provider<MQTTEntry>(transport: byURL).request(.connect)
        await byURL.shutdown()
        let (wrong, provider) = try fixture.provider {
            $0.userName = "ada"
            $0.password = "wrong"
        }
        await expectError(.unauthorized) { try await provider.request(.connect) }
        try await provider.request(.command(.connect(.userName("ada"), .password("secret"))))
        await fixture.end(wrong)
    }

    @Test(
        "A will is published when the connection is lost, not after a farewell",
        arguments: versions
    )
    func will(version: MQTTConfiguration.Version) async throws {
        let fixture = try Fixture()
        for (name, isPolite) in [("polite", true), ("sudden", false)] {
            let transport = try fixture.transport(version) {
                // A subscriber that comes after a retained will gets it, too.
                $0.will = Will(topic: "will/\(name)", body: "gone", qos: .atLeastOnce, .retained)
            }
            let provider = Provider<MQTTEntry>(transport: transport)
            try await provider.request(.connect)
            if isPolite {
                try await provider.request(.disconnect)
            } else {
                fixture.broker.dropConnections()
            }
            await transport.shutdown()
        }
        // The watcher connects after the others were disconnected.
        let (watcher, watching) = try fixture.provider(version)
        var messages = try await watching.messages(.subscribe("will/+", qos: .atLeastOnce))
            .makeAsyncIterator()
        let will = try #require(try await messages.next())
        #expect(will.topic == "will/sudden" && will.text == "gone")
        // Messages that were published earlier arrive before this one.
        try await watching.request(.send("end", to: "will/end", qos: .atLeastOnce))
        #expect(try await messages.next()?.topic == "will/end")
        await fixture.end(watcher)
    }

    @Test("Retained messages come to later subscribers", arguments: ways)
    func retained(way: Way) async throws {
        let fixture = try Fixture(way.service)
        let (transport, provider) = try fixture.provider(way.version)
        try await provider.request(.send("kept", to: "a/b", qos: .atLeastOnce, .retained))
        var iterator = try await provider.messages(.subscribe("a/#")).makeAsyncIterator()
        let message = try #require(try await iterator.next())
        #expect(message.isRetained && message.text == "kept")
        await fixture.end(transport)
    }

    @Test("Manual acknowledgement: nothing is confirmed until the app says so")
    func manual() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(
            .subscribe("t", qos: .atLeastOnce, .manualAcknowledgement)
        )
        try await provider.request(.send("1", qos: .atLeastOnce))
        try await provider.request(.send("2", qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        let first = try #require(try await iterator.next()?.id)
        let second = try #require(try await iterator.next()?.id)
        try await provider.request(.send("probe", to: "other", qos: .atLeastOnce))
        #expect(fixture.lines.count("← PUBACK") == 0)
        try await provider.request(.command(.nack(first)))
        try await provider.request(.command(.ack(second)))
        await expectError(.invalidEntry) { try await provider.request(.command(.ack(second))) }
        try await provider.request(.send("probe", to: "other", qos: .atLeastOnce))
        #expect(fixture.lines.count("← PUBACK id=1 Unspecified error (0x80)") == 1)
        #expect(fixture.lines.count("← PUBACK id=2") == 1)
        await fixture.end(transport)
    }

    @Test("Slow and split delivery changes nothing", arguments: ways)
    func faults(way: Way) async throws {
        let fixture = try Fixture(way.service)
        let version = way.version
        fixture.broker.faults.splitsWrites = 1
        fixture.broker.faults.delay = .milliseconds(2)
        let (transport, provider) = try fixture.provider(version)
        let messages = try await provider.messages(.subscribe())
        for text in ["1", "2", "3"] { try await provider.request(.send(text, qos: .exactlyOnce)) }
        #expect(try await texts(3, messages) == ["1", "2", "3"])
        await fixture.end(transport)
    }
}
