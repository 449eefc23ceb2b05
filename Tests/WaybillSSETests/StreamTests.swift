import Foundation
import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

@Suite("Event stream transport: streams", .inSimulation, .timeLimit(.minutes(30)))
struct StreamTests {
    private func collect(_ count: Int, _ messages: Messages<Message>) async throws -> [Message] {
        var collected: [Message] = []
        for try await message in messages {
            collected.append(message)
            if collected.count == count { break }
        }
        return collected
    }

    @Test("A stream is asked for as the standard says, and its events are messages")
    func events() async throws {
        let server = HTTPServer([.open(Say.stream("id: 7\nevent: note\ndata: a\n\ndata: b\n\n"))])
        let transport = try server.transport { $0.headers = ["X-Common": "c"] }
        let provider = Provider<StreamEntry>(transport: transport)
        let messages = try await provider.messages(.listen("rooms/1?since=2"))
        let heard = try await collect(2, messages)
        #expect(heard.map(\.text) == ["a", "b"])
        #expect(heard.map { $0[.eventType] } == ["note", nil])
        #expect(heard.map { $0.id?.description } == ["7", "7"])
        #expect(heard.allSatisfy { $0.topic == "rooms/1?since=2" })
        let head = try #require(server.requests.first?.head)
        #expect(head.method == "GET")
        #expect(head.target == "/api/rooms/1?since=2")
        #expect(head.headers.first("host") == "example.com")
        #expect(head.headers.first("accept") == "text/event-stream")
        #expect(head.headers.first("cache-control") == "no-cache")
        #expect(head.headers.first("pragma") == "no-cache")
        #expect(head.headers.first("last-event-id") == nil)
        #expect(head.headers.first("x-common") == "c")
        await transport.shutdown()
        #expect(server.ends == 1)
    }

    @Test("A stream that ends is asked for again from its last event on, after its own time")
    func reconnects() async throws {
        let server = HTTPServer([
            .close(Say.stream("retry: 200\nid: 1\ndata: a\n\n")),
            .close(Say.stream("id: é2\ndata: b\n\ndata: unfinished")),
            .open(Say.stream("data: c\n\n")),
        ])
        let transport = try server.transport()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(100)) }) {
            server.requests.count >= 2
        }
        #expect(try await iterator.next()?.text == "b")
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(100)) }) {
            server.requests.count >= 3
        }
        #expect(try await iterator.next()?.text == "c")
        let ids = server.requests.map { $0.head.headers.first("last-event-id") }
        #expect(ids == [nil, "1", "é2"])
        await transport.shutdown()
    }

    @Test("204 stops for good, without an error")
    func noContent() async throws {
        let server = HTTPServer([
            .close(Say.stream("data: a\n\n")), .close(Say.status(204)), .open(Say.stream("")),
        ])
        let transport = try server.transport { $0.reconnection.initialDelay = .zero }
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        var heard: [String?] = []
        for try await message in messages { heard.append(message.text) }
        #expect(heard == ["a"])
        #expect(server.requests.count == 2)
        await transport.shutdown()
    }

    @Test("What is no event stream is a typed error with status, fields and body")
    func refusals() async throws {
        let rows: [([UInt8], WaybillError.Code, Int)] = [
            (Say.status(401, "WWW-Authenticate: Basic\r\n", body: "who?"), .unauthorized, 401),
            (Say.status(404, body: "where?"), .rejected, 404),
            (Say.status(410), .rejected, 410),
            (Say.status(503, body: "busy"), .connectionRefused, 503),
            (
                Say.status(200, "Content-Type: text/x-bogus\r\n", body: "data: x\n\n"),
                .protocolViolation, 200
            ),
            (
                Say.status(299, "Content-Type: text/event-stream\r\n", body: "data: x\n\n"),
                .rejected, 299
            ),
        ]
        for (answer, code, status) in rows {
            let server = HTTPServer([.close(answer)])
            let transport = try server.transport()
            let error = await #expect(throws: WaybillError.self) {
                try await Provider<StreamEntry>(transport: transport).messages(.listen())
            }
            #expect(error?.code == code, "\(status)")
            #expect((error?.underlying as? HTTPRefusal)?.status == status)
            #expect(server.requests.count == 1)
            await transport.shutdown()
        }
        let gone = try HTTPServer([.refuse]).transport()
        let error = await #expect(throws: WaybillError.self) {
            try await Provider<StreamEntry>(transport: gone).messages(.listen())
        }
        #expect(error?.code == .connectionRefused)
    }

    @Test(
        "The type is told apart from its parameters and its case",
        arguments: [
            "text/event-stream;charset=utf-8", "TEXT/Event-Stream", "text/event-stream; ",
            " text/event-stream ;x",
        ]
    )
    func contentTypes(_ type: String) async throws {
        let server = HTTPServer([
            .open(Array("HTTP/1.1 200 OK\r\nContent-Type: \(type)\r\n\r\ndata: a\n\n".utf8))
        ])
        let transport = try server.transport()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        #expect(try await collect(1, messages).first?.text == "a")
        await transport.shutdown()
    }

    @Test("Redirects are followed, up to the limit", arguments: [301, 302, 303, 307, 308])
    func redirects(_ status: Int) async throws {
        let server = HTTPServer([
            .close(Say.status(status, "Location: /target?x=1\r\n")),
            .open(Say.stream("data: a\n\n")),
        ])
        let transport = try server.transport()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        #expect(try await collect(1, messages).first?.text == "a")
        #expect(server.requests.map(\.head.target) == ["/api/events", "/target?x=1"])
        await transport.shutdown()

        let loop = HTTPServer(
            Array(repeating: .close(Say.status(status, "Location: /\r\n")), count: 20)
        )
        let lost = try loop.transport()
        let error = await #expect(throws: WaybillError.self) {
            try await Provider<StreamEntry>(transport: lost).messages(.listen())
        }
        #expect(error?.code == .rejected)
        #expect(loop.requests.count == 6)
    }

    @Test("Credentials do not follow to another origin; a POST becomes a GET where it must")
    func crossOrigin() async throws {
        for (location, isKept) in [
            ("http://other.example/x", false), ("http://example.com:8080/x", false),
            ("http://EXAMPLE.com/x", true), ("//example.com/x", true),
        ] {
            let server = HTTPServer([
                .close(Say.status(302, "Location: \(location)\r\n")),
                .open(Say.stream("data: a\n\n")),
            ])
            let transport = try server.transport("http://ada:secret@example.com/") {
                $0.headers = ["Cookie": "c=d", "X-Kept": "x"]
            }
            let entry = StreamEntry.command(.subscribe, topic: "t", body: .text("ask"))
            _ = try await Provider<StreamEntry>(transport: transport).messages(entry)
            let heads = server.requests.map(\.head)
            #expect(heads[0].method == "POST" && heads[1].method == "GET")
            #expect(heads[0].headers.first("authorization") == "Basic YWRhOnNlY3JldA==")
            #expect((heads[1].headers.first("authorization") != nil) == isKept, "\(location)")
            #expect((heads[1].headers.first("cookie") != nil) == isKept)
            #expect(heads[1].headers.first("x-kept") == "x")
            #expect(heads[1].headers.first("content-type") == nil)
            await transport.shutdown()
        }
        let server = HTTPServer([.close(Say.status(301, "Location: ftp://example.com/\r\n"))])
        let transport = try server.transport()
        let error = await #expect(throws: WaybillError.self) {
            try await Provider<StreamEntry>(transport: transport).messages(.listen())
        }
        #expect(error?.code == .unsupported)
    }

    @Test("Only the types asked for arrive; an id of before is sent at once")
    func options() async throws {
        let server = HTTPServer([
            .open(Say.stream("event: a\ndata: 1\n\nevent: b\ndata: 2\n\ndata: 3\n\n"))
        ])
        let transport = try server.transport()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(
            .listen("events", .eventTypes(["b", "message"]), .lastEventID("41"))
        )
        #expect(try await collect(2, messages).map(\.text) == ["2", "3"])
        #expect(server.requests.first?.head.headers.first("last-event-id") == "41")
        await transport.shutdown()
    }

    @Test("A stream that is silent for too long is asked for again; lines over the limit end it")
    func limits() async throws {
        let server = HTTPServer([
            .open(Say.stream("data: a\n\n")), .open(Say.stream("data: b\n\n")),
        ])
        let transport = try server.transport {
            $0.timeouts.silence = .seconds(30)
            $0.limits.lineSize = 20
        }
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(100)) }) {
            server.requests.count >= 2
        }
        #expect(try await iterator.next()?.text == "b")
        server.send("id: " + String(repeating: "x", count: 100))
        let error = await #expect(throws: WaybillError.self) { try await iterator.next() }
        #expect(error?.code == .limitExceeded)
        #expect(server.requests.count == 2)
        await transport.shutdown()
    }

    @Test("A consumer that lags holds the server back, and what is not read is no silence")
    func heldBack() async throws {
        let server = HTTPServer([.open(Say.stream(String(repeating: "data: a\n\n", count: 5)))])
        let transport = try server.transport {
            $0.buffering = BufferPolicy(.holdBack, messageLimit: 2)
            $0.timeouts.silence = .seconds(30)
        }
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        try await waitUntil { server.isQuiet }
        server.clock.advance(by: .seconds(500))
        server.send("data: b\n\n")
        #expect(try await collect(6, messages).map(\.text) == ["a", "a", "a", "a", "a", "b"])
        #expect(server.requests.count == 1)
        await transport.shutdown()
    }

    @Test("What is logged shows neither query nor fields nor bodies")
    func logging() async throws {
        let lines = Locked<[String]>([])
        let server = HTTPServer([.open(Say.stream("data: secret\n\n"))])
        let transport = try server.transport {
            $0.headers = ["Authorization": "Bearer secret"]
            $0.wireLogger = ClosureWireLogger { record in lines.withLock { $0.append("\(record)") }
            }
        }
        let messages = try await Provider<StreamEntry>(transport: transport)
            .messages(.listen("events?token=secret"))
        _ = try await collect(1, messages)
        await transport.shutdown()
        let text = lines.withLock { $0 }.joined(separator: "\n")
        #expect(text.contains("GET /api/events?…"))
        #expect(text.contains("event message"))
        #expect(!text.contains("secret"))
    }

    @Test("Letting go, unsubscribing, disconnecting and shutting down each close the stream")
    func ends() async throws {
        for way in 0..<4 {
            let server = HTTPServer([.open(Say.stream("data: a\n\n"))])
            let transport = try server.transport()
            let provider = Provider<StreamEntry>(transport: transport)
            var messages: Messages<Message>? = try await provider.messages(.listen())
            switch way {
            case 0: messages = nil
            case 1: try await provider.request(.command(.unsubscribe, topic: "events"))
            case 2: try await provider.request(.command(.disconnect))
            default: await transport.shutdown()
            }
            try await waitUntil { server.ends >= 1 }
            if let messages {
                var heard: [String?] = []
                for try await message in messages { heard.append(message.text) }
                #expect(heard == ["a"])
            }
            await transport.shutdown()
        }
    }

    @Test("Cancelling while the server is silent leaves nothing open")
    func cancelled() async throws {
        let server = HTTPServer([.open([])])
        let transport = try server.transport()
        let task = Task {
            try await Provider<StreamEntry>(transport: transport).messages(.listen())
        }
        try await waitUntil { !server.requests.isEmpty }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        try await waitUntil { server.ends >= 1 }
        await transport.shutdown()
    }

    @Test("What streams cannot do is refused before any connection")
    func unsupported() async throws {
        let server = HTTPServer([])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        let rows: [(EntryCommand, WaybillError.Code)] = [
            (.ack(.init(.text(WireName("1")))), .unsupported),
            (.begin(transaction: "t"), .unsupported),
            (.send(qos: .exactlyOnce), .unsupported),
            (.send(qos: .atMostOnce, .retained), .unsupported),
            (.connect(.userName("u")), .unsupported),
        ]
        for (command, code) in rows {
            let error = await #expect(throws: WaybillError.self) {
                try await provider.request(
                    .command(command, topic: command.name == "connect" ? nil : "t")
                )
            }
            #expect(error?.code == code, "\(command.name)")
        }
        for command in [EntryCommand.subscribe(qos: .exactlyOnce), .subscribe(.ackMode(.client))] {
            let error = await #expect(throws: WaybillError.self) {
                try await provider.messages(.command(command, topic: "t"))
            }
            #expect(error?.code == .unsupported)
        }
        for topic in ["a b", "a\r\nX: y", "é", "a#b"] {
            let error = await #expect(throws: WaybillError.self) {
                try await provider.messages(.listen(topic))
            }
            #expect(error?.code == .invalidEntry, "\(topic)")
        }
        #expect(server.endpoints.isEmpty)
        for (url, code) in [
            ("wss://h", WaybillError.Code.unsupported), ("mqtt://h", .unsupported),
            ("http:///", .invalidEntry),
        ] {
            #expect { try SSETransport(url: url) } throws: { ($0 as? WaybillError)?.code == code }
        }
    }
}
