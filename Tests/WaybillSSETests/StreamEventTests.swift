import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore

@Suite("Event stream transport: events", .inSimulation, .timeLimit(.minutes(30)))
struct StreamEventTests {
    @Test("A stream that is dropped in the middle, from the first connection to the end")
    func dropped() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        var configuration = SSEConfiguration()
        configuration.reconnection.initialDelay = .milliseconds(1)
        configuration.timeouts.connect = .seconds(120)
        let url = broker.url(for: .eventStream)
        let transport = try SSETransport(url: url, configuration: configuration)
        let sender = try SSETransport(url: url, configuration: configuration)
        let provider = Provider<StreamEntry>(transport: transport)
        var iterator = transport.events.makeAsyncIterator()
        let messages = try await provider.messages(.listen("t"))
        try await Provider<StreamEntry>(transport: sender).request(.post(.text("one"), to: "t"))
        var events = await take(to: .received, &iterator)
        broker.dropConnections()
        events += await take(to: .resubscribed, &iterator)
        let again = try SSETransport(url: url, configuration: configuration)
        try await Provider<StreamEntry>(transport: again).request(.post(.text("three"), to: "t"))
        events += await take(to: .received, &iterator)
        try await provider.request(.command(.unsubscribe, topic: "t"))
        events += await take(to: .subscriptionEnded, &iterator)
        #expect(
            events.map(\.kind) == [
                .connecting, .connected, .subscribed, .received, .disconnected, .waiting,
                .connecting, .connected, .resubscribed, .received, .disconnected,
                .subscriptionEnded,
            ]
        )
        let received = events.filter { $0.kind == .received }
        #expect(received.map(\.byteCount) == [3, 5] && received.allSatisfy { $0.topic == "t" })
        #expect(zip(events, events.dropFirst()).allSatisfy { $0.time <= $1.time })
        // The durations were measured. Their values are not known.
        for index in [1, 2, 4, 7, 8, 10] { #expect(events[index].duration ?? .zero > .zero) }
        for event in events where event.kind == .connected || event.kind == .disconnected {
            #expect(event.host == "127.0.0.1:\(broker.port(for: .eventStream))")
        }
        #expect(events[4].error?.code == .connectionLost && events[5].error != nil)
        #expect(events[10].error == nil && events[11].error == nil)
        _ = messages
        for each in [transport, sender, again] { await each.shutdown() }
        await broker.stop()
    }

    @Test("A send: its connection, when it was sent, when it was confirmed; the next needs none")
    func sends() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        let transport = try SSETransport(url: broker.url(for: .eventStream)) {
            $0.timeouts.connect = .seconds(120)
        }
        var iterator = transport.events.makeAsyncIterator()
        let provider = Provider<StreamEntry>(transport: transport)
        try await provider.request(.post(.text("hello"), to: "t"))
        try await provider.request(.post(.text("bye"), to: "t"))
        await transport.shutdown()
        let events = await take(to: .disconnected, &iterator)
        #expect(
            events.map(\.kind) == [
                .connecting, .connected, .sent, .acknowledged, .sent, .acknowledged,
                .disconnected,
            ]
        )
        #expect(events[2...5].map(\.byteCount) == [5, 5, 3, 3])
        #expect(events[2...5].allSatisfy { $0.topic == "t" })
        for index in [1, 3, 5, 6] { #expect(events[index].duration ?? .zero > .zero) }
        await broker.stop()
    }

    @Test("What is refused is told once, with the error that the caller gets")
    func refused() async throws {
        let server = HTTPServer([
            .open(Say.status(307, "Location: http://other.example/x\r\n")),
            .open(Say.status(404)), .close(Say.status(500, "Connection: close\r\n")), .refuse,
        ])
        let transport = try server.transport()
        var iterator = transport.events.makeAsyncIterator()
        let provider = Provider<StreamEntry>(transport: transport)
        await #expect(throws: WaybillError.self) { try await provider.messages(.listen("t")) }
        let first = await take(to: .subscriptionRefused, &iterator)
        #expect(first.map(\.kind) == [.connecting, .connectionFailed, .subscriptionRefused])
        #expect(first.map(\.host) == ["example.com:80", "other.example:80", nil])
        #expect(first.last?.error?.code == .rejected && first.last?.topic == "t")
        for isConnected in [true, false] {
            await #expect(throws: WaybillError.self) {
                try await provider.request(.post(.text("x")))
            }
            let events = await take(to: .sendFailed, &iterator)
            let failed = events.last
            #expect(failed?.error?.code == .connectionRefused && failed?.byteCount == 1)
            #expect(events.contains { $0.kind == .sent } == isConnected)
            #expect(events.contains { $0.kind == .connectionFailed } == !isConnected)
        }
        await transport.shutdown()
    }

    @Test("What the policy of a stream drops is reported, with its size")
    func drops() async throws {
        let server = HTTPServer([.open(Say.stream("data: a\n\ndata: bb\n\ndata: ccc\n\n"))])
        let transport = try server.transport()
        var iterator = transport.events.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(
            .listen("t", .buffering(BufferPolicy(.dropOldest, messageLimit: 1)))
        )
        let dropped = await take(to: .dropped, &iterator).last
        #expect(dropped?.count == 2 && dropped?.byteCount == 3 && dropped?.topic == "t")
        #expect(dropped?.dropReason == .oldestWaiting)
        _ = messages
        await transport.shutdown()
    }

    @Test("No event shows a query, a field or a body")
    func secrets() async throws {
        let server = HTTPServer([
            .open(Say.stream("data: secret\n\n")),
            .open(Say.status(401, "WWW-Authenticate: secret\r\n", body: "secret")),
        ])
        let transport = try server.transport { $0.headers = ["Authorization": "Bearer secret"] }
        var iterator = transport.events.makeAsyncIterator()
        let provider = Provider<StreamEntry>(transport: transport)
        let messages = try await provider.messages(.listen("t?token=secret"))
        var received = messages.makeAsyncIterator()
        #expect(try await received.next() != nil)
        await #expect(throws: WaybillError.self) {
            try await provider.request(.post(.text("secret"), to: "t?token=secret"))
        }
        let events = await take(to: .sendFailed, &iterator)
        #expect(events.count >= 8)
        for event in events { #expect(!"\(event)".contains("secret")) }
        _ = messages
        await transport.shutdown()
    }
}
