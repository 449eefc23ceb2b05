import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

@Suite("STOMP transport over the loopback broker", .inSimulation, .timeLimit(.minutes(30)))
struct TransportTests {
    @Test("Sending without receipts and without end lets the actor's other tasks run") @MainActor
    func turns() async throws {
        let fixture = try Fixture(.stomp)
        let (transport, provider) = try fixture.provider()
        try await provider.request(.connect)
        let count = try await callsBeforeNeighbour(atMost: 10_000) { number in
            try await provider.request(.send("\(number)", .receipt(.none)))
        }
        #expect(count == 256)
        await fixture.end(transport)
    }

    #if os(Linux)
        @Test("At the end, streams end in the order in which they were subscribed to")
        func endingOrder() async throws {
            let fixture = try Fixture(.stomp)
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

    @Test("Messages go there and back in order, connecting on demand", arguments: services)
    func roundTrip(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(.subscribe("t"))
        for number in 0..<50 { try await provider.request(.send("\(number)", to: "t")) }
        #expect(try await texts(50, messages) == (0..<50).map { "\($0)" })
        try await provider.request(.disconnect)
        #expect("\(transport.states.current)" == "disconnected")
        await fixture.end(transport)
    }

    @Test(
        "Every version of the protocol, acknowledged message by message",
        arguments: services,
        STOMPConfiguration.Version.allCases
    )
    func versions(
        service: LoopbackBroker.Service,
        version: STOMPConfiguration.Version
    ) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider { $0.versions = [version] }
        let receipt = try await provider.request(.connect)
        #expect(receipt.reason?.hasPrefix("STOMP 1.") == true)
        let entry = STOMPEntry.command(.subscribe(qos: .atLeastOnce), topic: "/queue/t")
        let messages = try await provider.messages(entry)
        for number in 0..<10 { try await provider.request(.send("\(number)")) }
        #expect(try await texts(10, messages) == (0..<10).map { "\($0)" })
        try await provider.request(.unsubscribe())
        // All messages were acknowledged, so none is delivered again.
        let again = try await provider.messages(.subscribe())
        try await provider.request(.send("new"))
        #expect(try await texts(1, again) == ["new"])
        await fixture.end(transport)
    }

    @Test("All that STOMP carries beside the body goes there and back", arguments: services)
    func headers(service: LoopbackBroker.Service) async throws {
        let fixture = try Fixture(service)
        let (transport, provider) = try fixture.provider()
        let messages = try await provider.messages(.subscribe("t"))
        let headers: Headers = ["b": "1:2\n3\\", "a": "2", "b": "3", "reply-to": "/queue/r"]
        try await provider.request(
            .command(.send, topic: "t", body: .json(["a": 1]), headers: headers)
        )
        var iterator = messages.makeAsyncIterator()
        let message = try #require(try await iterator.next())
        #expect(message.contentType == "application/json")
        #expect(message.text == #"{"a":1}"#)
        #expect(message.headers.all("b") == ["1:2\n3\\", "3"])
        #expect(message.headers["a"] == "2")
        #expect(message[.responseTopic] == "/queue/r")
        #expect(message.topic == "t" && !message.isDuplicate)
        #expect(message.headers["content-length"] == "7")
        await fixture.end(transport)
    }

    @Test("One entry, one topic, two protocols: messages cross over")
    func acrossProtocols() async throws {
        let fixture = try Fixture()
        let (stomp, overSTOMP) = try fixture.provider()
        let mqtt = try MQTTTransport(url: fixture.broker.url(for: .mqttOverWebSocket)) {
            $0.timeouts.connect = .seconds(120)
        }
        let overMQTT = Provider<STOMPEntry>(transport: mqtt)
        let hearsSTOMP = try await overSTOMP.messages(.subscribe("chat/lobby"))
        let entry = STOMPEntry.command(.subscribe(qos: .atLeastOnce), topic: "chat/+")
        let hearsMQTT = try await overMQTT.messages(entry)
        let json = EntryBody.json(["x"])
        try await overSTOMP.request(
            .command(.send, topic: "chat/lobby", body: json, headers: ["a": "1"])
        )
        try await overMQTT.request(
            .command(
                .send(qos: .atLeastOnce),
                topic: "chat/lobby",
                body: .text("y"),
                headers: ["a": "2"]
            )
        )
        for messages in [hearsSTOMP, hearsMQTT] {
            let heard = try await take(2, messages)
            #expect(heard.map(\.text) == [#"["x"]"#, "y"])
            #expect(heard.map(\.contentType) == ["application/json", "text/plain; charset=utf-8"])
            #expect(heard.map { $0.headers["a"] } == ["1", "2"])
        }
        await fixture.end(stomp, mqtt)
    }
}
