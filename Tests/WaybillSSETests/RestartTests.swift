import Foundation
import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// The data of a server beside its events, and streams that the app restarts.
@Suite("Heads, comments and restarts of streams", .inSimulation, .timeLimit(.minutes(30)))
struct RestartTests {
    private func source(
        _ server: HTTPServer,
        method: String? = nil,
        body: Payload = Payload(),
        contentType: String? = nil
    ) throws -> EventSource {
        let timers = server.clock.linkTimers
        return try EventSource(
            url: #require(URL(string: "http://example.com/stream")),
            method: method,
            body: body,
            contentType: contentType,
            SSEConfiguration(),
            environment: LinkEnvironment(
                dialer: server,
                clock: timers,
                random: { 0 }
            )
        )
    }

    @Test("The heads of responses and the comments of a stream can be seen, in order")
    func streamEvents() async throws {
        let server = HTTPServer([
            .open(Say.stream(": one\ndata: 1\n\n:two\n", "X-Node: a\r\n"))
        ])
        let transport = try server.transport()
        var seen = transport.streamEvents().makeAsyncIterator()
        let provider = Provider<StreamEntry>(transport: transport)
        let messages = try await provider.messages(.listen("room"))
        guard case .opened("room", let response, let first)? = await seen.next() else {
            Issue.record("no head")
            return
        }
        #expect(response.status == 200)
        #expect(response.headers["X-Node"] == "a")
        var serials = [first]
        for expected in ["one", "two"] {
            guard case .comment("room", let text, let serial)? = await seen.next() else {
                Issue.record("no comment")
                return
            }
            #expect(text == expected)
            serials.append(serial)
        }
        var iterator = messages.makeAsyncIterator()
        let message = try await iterator.next()
        #expect(message?.text == "1")
        // It has come between the comments.
        let serial = try #require(message?[.serial])
        serials.insert(serial, at: 2)
        #expect(serials == serials.sorted() && Set(serials).count == 4, "\(serials)")
        await transport.shutdown()
        #expect(await seen.next() == nil)
    }

    @Test(
        "The stream events that wait are the newest ones, of 1 MiB and of the number that was asked for"
    )
    func boundedEvents() async throws {
        let long = String(repeating: "x", count: 600_000)
        let server = HTTPServer([.open(Say.stream(":1\n:2\n"))])
        let transport = try server.transport()
        let (all, two) = (transport.streamEvents(), transport.streamEvents(bufferingNewest: 2))
        let gone = transport.streamEvents()
        _ = consume gone
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        for text in [":\(long)1\n", ":\(long)2\n:3\n"] {
            await untilQuiet()
            server.send(text)
        }
        await untilQuiet()
        await transport.shutdown()
        for (events, expected) in [(all, ["2", "3"]), (two, ["2", "3"])] {
            var ends: [String] = []
            for await event in events {
                if case .comment(_, let text, _) = event { ends.append(String(text.suffix(1))) }
            }
            #expect(ends == expected)
        }
        withExtendedLifetime(messages) {}
    }

    @Test("The stream events of all observers together have three quarters of the memory limit")
    func chargedEvents() async throws {
        let server = HTTPServer([.open(Say.stream(""))])
        let transport = try server.transport { $0.limits.memory = 100_000 }
        var observers = (0..<20).map { _ in transport.streamEvents() }
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        await untilQuiet()
        func send(_ numbers: ClosedRange<Int>) async {
            for number in numbers {
                server.send(":\(String(repeating: "x", count: 2_000))\(number)\n")
                await untilQuiet()
            }
        }
        // All together would be 800,000 bytes.
        await send(1...20)
        // The room of the observers that end is free again: the last one keeps all of the next 30.
        observers.removeFirst(19)
        await send(21...50)
        // So is the room of what it gives to the app.
        var iterator = observers[0].makeAsyncIterator()
        var numbers: [String] = []
        while numbers.last != "50", let event = await iterator.next() {
            numbers += Self.number(of: event)
        }
        #expect(numbers.suffix(31).first == "20", "\(numbers)")
        await send(51...80)
        while numbers.last != "80", let event = await iterator.next() {
            numbers += Self.number(of: event)
        }
        #expect(numbers.suffix(31).first == "50", "\(numbers)")
        await transport.shutdown()
        withExtendedLifetime(messages) {}
    }

    /// What stands behind the filling of a comment.
    private static func number(of event: SSETransport.StreamEvent) -> [String] {
        guard case .comment(_, let text, _) = event else { return [] }
        return [String(text.drop { $0 == "x" })]
    }

    @Test("Each observer keeps the last stream event, whatever the others keep")
    func lastEvents() async throws {
        let server = HTTPServer([.open(Say.stream(""))])
        let transport = try server.transport { $0.limits.memory = 100_000 }
        let observers = (0..<20).map { _ in transport.streamEvents() }
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        for number in 1...20 {
            server.send(":\(String(repeating: "x", count: 2_000))\(number)\n")
            await untilQuiet()
        }
        await transport.shutdown()
        var (byteCount, lastCount) = (0, 0)
        for observer in observers {
            for await event in observer {
                guard case .comment(_, let text, _) = event else { continue }
                byteCount += text.utf8.count
                if text.hasSuffix("x20") { lastCount += 1 }
            }
        }
        #expect((50_000...120_000).contains(byteCount), "\(byteCount)")
        #expect(lastCount == 20)
        withExtendedLifetime(messages) {}
    }

    @Test("No more than 1,024 stream events wait, however many were asked for")
    func countOfEvents() async throws {
        let server = HTTPServer([.open(Say.stream(""))])
        let transport = try server.transport()
        let events = transport.streamEvents(bufferingNewest: 5_000)
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        server.send((1...1_100).map { ":\($0)\n" }.joined())
        await untilQuiet()
        await transport.shutdown()
        var comments: [String] = []
        for await event in events {
            if case .comment(_, let text, _) = event { comments.append(text) }
        }
        #expect(comments.count == 1_024)
        #expect(comments.first == "77" && comments.last == "1100")
        withExtendedLifetime(messages) {}
    }

    @Test("One stream is requested again after its last event; its listeners notice nothing")
    func restart() async throws {
        let server = HTTPServer([
            .open(Say.stream("id: 7\ndata: 1\n\n")), .open(Say.stream("data: other\n\n")),
            .open(Say.stream("data: 2\n\n")),
        ])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        let messages = try await provider.messages(.listen("room"))
        let others = try await provider.messages(.listen("other"))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "1")
        #expect(transport.restart(topic: "nothing") == 0)
        #expect(transport.restart(topic: "room") == 1)
        #expect(try await iterator.next()?.text == "2")
        #expect(server.requests.count == 3)
        #expect(server.requests.last?.head.target == "/api/room")
        #expect(server.requests.last?.head.headers.first("last-event-id") == "7")
        #expect(server.ends == 1)
        var other = others.makeAsyncIterator()
        #expect(try await other.next()?.text == "other")
        await transport.shutdown()
    }

    @Test("An event source asks with any method and body, and can be restarted")
    func methodAndBody() async throws {
        let server = HTTPServer([
            .open(Say.stream("id: a\ndata: 1\n\n")), .open(Say.stream("data: 2\n\n")),
        ])
        let source = try source(
            server,
            method: "QUERY",
            body: #"{"since":1}"#,
            contentType: "application/json"
        )
        let seen = Locked<[String]>([])
        source.onMessage { event in seen.withLock { $0.append(event.data) } }
        source.connect()
        try await waitUntil { seen.withLock { $0 } == ["1"] }
        source.restart()
        try await waitUntil { seen.withLock { $0 } == ["1", "2"] }
        for request in server.requests {
            #expect(request.head.method == "QUERY")
            #expect(String(decoding: request.body, as: UTF8.self) == #"{"since":1}"#)
            #expect(request.head.headers.first("content-type") == "application/json")
        }
        #expect(server.requests.last?.head.headers.first("last-event-id") == "a")
        await source.shutdown()
        source.restart()
        #expect(server.requests.count == 2)
        #expect(throws: WaybillError.self) { try self.source(server, method: "NO GOOD") }
    }

    @Test("A source tells of heads, comments and events of any type, in order")
    func everything() async throws {
        let server = HTTPServer([
            .open(Say.stream(":hello\nevent: a\ndata: 1\n\ndata: 2\n\n: \n", "X-Node: b\r\n"))
        ])
        let source = try source(server)
        let seen = Locked<[String]>([])
        @Sendable func note(_ line: String) { seen.withLock { $0.append(line) } }
        source.onResponse {
            note("\($0.status) \($0.headers["x-node"] ?? $0.headers["X-Node"] ?? "")")
        }
        source.onOpen { note("open") }
        source.onComment { note("comment \($0)") }
        source.onEvent { note("event \($0.type) \($0.data)") }
        source.onMessage { note("message \($0.data)") }
        source.addEventListener("a") { note("listener \($0.data)") }
        source.connect()
        try await waitUntil { seen.withLock { $0.count } == 8 }
        #expect(
            seen.withLock { $0 } == [
                "200 b", "open", "comment hello", "event a 1", "listener 1", "event message 2",
                "message 2", "comment ",
            ]
        )
        await source.shutdown()
    }
}
