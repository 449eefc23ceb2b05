import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

@Suite("Event stream transport: the loopback broker", .inSimulation, .timeLimit(.minutes(30)))
struct LoopbackTests {
    private func broker(
        _ change: (inout LoopbackBroker.Configuration) -> Void = { _ in }
    ) throws -> LoopbackBroker {
        var configuration = LoopbackBroker.Configuration()
        configuration.eventStreamRetry = .milliseconds(5)
        change(&configuration)
        let broker = LoopbackBroker(configuration: configuration)
        try broker.start()
        return broker
    }

    private func transport(
        _ broker: LoopbackBroker,
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) throws -> SSETransport {
        var configuration = SSEConfiguration()
        configuration.reconnection.initialDelay = .milliseconds(5)
        configuration.timeouts.connect = .seconds(120)
        change(&configuration)
        return try SSETransport(url: broker.url(for: .eventStream), configuration: configuration)
    }

    private func error(_ body: () async throws -> Void) async -> WaybillError? {
        do { try await body() } catch { return error as? WaybillError }
        return nil
    }

    private func status(_ error: WaybillError?) -> Int? {
        (error?.underlying as? HTTPRefusal)?.status
    }

    @Test("A POST reaches the streams of its path, with ids that increase")
    func post() async throws {
        let broker = try broker()
        let transport = try transport(broker)
        let provider = Provider<StreamEntry>(transport: transport)
        var heard = try await provider.messages(.listen("rooms/caf%C3%A9?x=1")).makeAsyncIterator()
        let receipt = try await provider.request(.post(.text("a\nb"), to: "/rooms/caf%C3%A9"))
        #expect(receipt.reason == "200" && receipt.reply?.body.isEmpty == true)
        let note = StreamEntry.command(
            .send,
            topic: "rooms/caf%C3%A9",
            body: .text("c"),
            headers: ["event": "note"]
        )
        try await provider.request(note)
        let first = try #require(try await heard.next())
        let second = try #require(try await heard.next())
        #expect([first.text, second.text] == ["a\nb", "c"])
        #expect([first.id?.description, second.id?.description] == ["1", "2"])
        #expect([first[.eventType], second[.eventType]] == [nil, "note"])
        await transport.shutdown()
        await broker.stop()
        #expect(broker.connectionCount == 0 && broker.port(for: .eventStream) == 0)
    }

    @Test("Thousands of events over streams that are cut again and again: none lost, none twice")
    func replay() async throws {
        let count = 2_000
        let broker = try broker { $0.eventMemory = count }
        broker.faults.dropsStreamsAfter = 97
        let transport = try transport(broker)
        let sender = try self.transport(broker)
        let heard = try await Provider<StreamEntry>(transport: transport).messages(.listen("n"))
        let sending = Task {
            let provider = Provider<StreamEntry>(transport: sender)
            for number in 0..<count {
                try await provider.request(.post(.text("\(number)"), to: "n"))
            }
        }
        var numbers: [String?] = []
        var ids: [String?] = []
        for try await message in heard {
            numbers.append(message.text)
            ids.append(message.id?.description)
            if numbers.count == count { break }
        }
        try await sending.value
        #expect(numbers == (0..<count).map { "\($0)" })
        #expect(ids == (1...count).map { "\($0)" })
        await transport.shutdown()
        await sender.shutdown()
        await broker.stop()
    }

    @Test("A stream begins after the id that it is given, as far as the memory goes")
    func memory() async throws {
        let broker = try broker { $0.eventMemory = 3 }
        let transport = try transport(broker)
        let provider = Provider<StreamEntry>(transport: transport)
        for number in 1...5 { try await provider.request(.post(.text("\(number)"), to: "m")) }
        for (last, expected) in [("4", ["5"]), ("1", ["3", "4", "5"]), ("0", ["3", "4", "5"])] {
            let heard = try await provider.messages(.listen("m", .lastEventID(last)))
            var iterator = heard.makeAsyncIterator()
            for text in expected { #expect(try await iterator.next()?.text == text) }
        }
        var fresh = try await provider.messages(.listen("m")).makeAsyncIterator()
        try await provider.request(.post(.text("6"), to: "m"))
        #expect(try await fresh.next()?.text == "6")
        await transport.shutdown()
        await broker.stop()
    }

    @Test(
        "MQTT, STOMP and event streams hear each other",
        arguments: [
            LoopbackBroker.Service.mqtt, .stomp,
        ]
    )
    func crossing(service: LoopbackBroker.Service) async throws {
        let broker = try broker()
        let streams = try transport(broker)
        let url = broker.url(for: service)
        let other: any Transport =
            service == .mqtt
            ? try MQTTTransport(url: url) { $0.timeouts.connect = .seconds(120) }
            : try STOMPTransport(url: url) { $0.timeouts.connect = .seconds(120) }
        let here = Provider<StreamEntry>(transport: streams)
        let there = Provider<StreamEntry>(transport: other)
        var hearing = try await here.messages(.listen("chat/lobby")).makeAsyncIterator()
        var listening = try await there.messages(.listen("chat/lobby")).makeAsyncIterator()
        let note = StreamEntry.command(
            .send,
            topic: "chat/lobby",
            body: .json(["a": 1]),
            headers: ["event": "note"]
        )
        try await there.request(note)
        let event = try #require(try await hearing.next())
        #expect(event.text == #"{"a":1}"# && event[.eventType] == "note")
        #expect(try await listening.next()?.text == #"{"a":1}"#)
        try await here.request(note)
        let message = try #require(try await listening.next())
        #expect(message.text == #"{"a":1}"# && message.contentType == "application/json")
        #expect(message.headers["event"] == "note")
        await streams.shutdown()
        await other.shutdown()
        await broker.stop()
    }

    @Test("Credentials are asked for")
    func credentials() async throws {
        let broker = try broker { $0.credentials = ["ada": "se:cret"] }
        let stranger = try transport(broker)
        let refused = Provider<StreamEntry>(transport: stranger)
        #expect(await status(error { _ = try await refused.messages(.listen()) }) == 401)
        #expect(await status(error { try await refused.request(.post(.text("x"))) }) == 401)
        let known = try transport(broker) { configuration in
            configuration.userName = "ada"
            configuration.password = "se:cret"
        }
        try await Provider<StreamEntry>(transport: known).request(.post(.text("x")))
        await stranger.shutdown()
        await known.shutdown()
        await broker.stop()
    }

    @Test("Faults: refusals, answers on demand, paths and methods")
    func refusals() async throws {
        let broker = try broker()
        let transport = try transport(broker)
        let provider = Provider<StreamEntry>(transport: transport)
        broker.faults.refusesConnections = .serverUnavailable
        #expect(await status(error { _ = try await provider.messages(.listen()) }) == 503)
        broker.faults.refusesConnections = nil
        broker.faults.refusesSubscriptions = ["events"]
        #expect(await status(error { _ = try await provider.messages(.listen()) }) == 403)
        broker.faults.refusesSubscriptions = []
        broker.faults.answers = [
            .init(302, headers: ["Location": "/elsewhere"]), .init(204),
            .init(503, headers: ["Retry-After": "7"], body: "later"),
        ]
        let stopped = await error { _ = try await provider.messages(.listen()) }
        #expect(stopped?.code == .rejected && stopped?.peerReason == "204")
        let later = await error { _ = try await provider.messages(.listen()) }
        let refusal = try #require(later?.underlying as? HTTPRefusal)
        #expect(refusal.status == 503 && refusal.body == "later")
        #expect(refusal.headers.first("Retry-After") == "7")
        #expect(broker.faults.answers.isEmpty)

        func answer(to method: String, _ topic: String) async -> Int? {
            let entry = StreamEntry.command(.send(.method(method)), topic: topic)
            return status(await error { try await provider.request(entry) })
        }
        #expect(await answer(to: "DELETE", "x") == 405)
        #expect(await answer(to: "POST", "/") == 404)
        #expect(await answer(to: "POST", "%FF") == 404)
        #expect(await answer(to: "POST", "%4") == 404)
        #expect(await answer(to: "HEAD", "x") == nil)
        await transport.shutdown()
        await broker.stop()
    }

    @Test("Events that are withheld are remembered, and come with the next one")
    func withheld() async throws {
        let broker = try broker()
        let transport = try transport(broker)
        let provider = Provider<StreamEntry>(transport: transport)
        var heard = try await provider.messages(.listen("w")).makeAsyncIterator()
        broker.faults.withholdsEvents = true
        try await provider.request(.post(.text("1"), to: "w"))
        try await provider.request(.post(.text("2"), to: "w"))
        broker.faults.withholdsEvents = false
        try await provider.request(.post(.text("3"), to: "w"))
        for text in ["1", "2", "3"] { #expect(try await heard.next()?.text == text) }
        await transport.shutdown()
        await broker.stop()
    }

    @Test(
        "Slow and split bytes change nothing; the end that the broker makes is one to come back from"
    )
    func bytes() async throws {
        let broker = try broker()
        broker.faults.splitsWrites = 3
        broker.faults.delay = .milliseconds(1)
        let transport = try transport(broker)
        let provider = Provider<StreamEntry>(transport: transport)
        var heard = try await provider.messages(.listen("s")).makeAsyncIterator()
        try await provider.request(.post(.text("one"), to: "s"))
        #expect(try await heard.next()?.text == "one")
        broker.disconnectClients()
        let sender = try self.transport(broker)
        try await Provider<StreamEntry>(transport: sender).request(.post(.text("two"), to: "s"))
        #expect(try await heard.next()?.text == "two")
        await transport.shutdown()
        await sender.shutdown()
        await broker.stop()
    }
}
