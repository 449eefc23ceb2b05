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

@Suite("Event source", .inSimulation, .timeLimit(.minutes(30))) struct EventSourceTests {
    /// Records the calls of the handlers, one line for each.
    private final class Journal: Sendable {
        let lines: AsyncStream<String>
        private let continuation: AsyncStream<String>.Continuation
        private let all = Locked<[String]>([])

        init() {
            (lines, continuation) = AsyncStream.makeStream(of: String.self)
        }

        var text: [String] { all.withLock { $0 } }

        func note(_ line: String) {
            all.withLock { $0.append(line) }
            continuation.yield(line)
        }

        /// Waits until there are this many lines.
        func wait(for count: Int) async throws {
            try await waitUntil { text.count >= count }
        }

        /// Records the calls of all handlers of a source.
        func follow(_ source: EventSource) {
            source.onOpen { [weak source] in
                self.note("open \(source.map { "\($0.readyState)" } ?? "")")
            }
            source.onMessage { self.note("message \($0.data) \($0.lastEventID)") }
            source.onComplete { [weak source] completion in
                let status = completion.status.map { "\($0)" } ?? "none"
                let next = completion.willReconnect ? "again" : "over"
                let state = source.map { "\($0.readyState)" } ?? ""
                self.note("\(status) \(next) \(completion.error?.code.name ?? "fine") \(state)")
            }
        }
    }

    private func source(
        _ server: HTTPServer,
        headers: Headers = [:],
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) throws -> EventSource {
        var configuration = SSEConfiguration()
        change(&configuration)
        let timers = server.clock.linkTimers
        return try EventSource(
            url: #require(URL(string: "http://example.com/stream?a=b")),
            headers: headers,
            configuration,
            environment: LinkEnvironment(
                dialer: server,
                clock: timers,
                random: { 0 }
            )
        )
    }

    private func reach(_ count: Int, _ server: HTTPServer) async throws {
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(10)) }) {
            server.requests.count >= count
        }
    }

    // MARK: The web platform's cases

    /// The body of the only response of a case.
    private func body(_ name: String) throws -> String {
        let cases = WebPlatformCase.all.filter { $0.kind == "api" }
        #expect(cases.count == 4)
        let found = try #require(cases.first { $0.name == name })
        return String(decoding: try #require(found.responses.first).bytes, as: UTF8.self)
    }

    @Test("states-and-close")
    func statesAndClose() async throws {
        let server = HTTPServer([.open([])])
        let source = try source(server)
        let journal = Journal()
        journal.follow(source)
        source.onOpen { [weak source] in
            guard let source else { return }
            let before = source.readyState
            source.disconnect()
            journal.note("\(before) \(source.readyState)")
        }
        #expect(source.readyState == .closed)
        source.connect()
        try await reach(1, server)
        #expect(source.readyState == .connecting)
        server.send(String(decoding: Say.stream(try body("states-and-close")), as: UTF8.self))
        try await journal.wait(for: 1)
        await source.shutdown()
        server.clock.advance(by: .seconds(10))
        #expect(journal.text == ["open closed"])
        #expect(source.readyState == .closed && server.requests.count == 1 && server.ends == 1)
    }

    @Test("open-is-announced")
    func openIsAnnounced() async throws {
        let server = HTTPServer([.close(Say.stream(try body("open-is-announced")))])
        let source = try source(server) { $0.reconnection = .never }
        let journal = Journal()
        journal.follow(source)
        source.connect()
        try await journal.wait(for: 3)
        #expect(journal.text == ["open open", "message data ", "200 over fine closed"])
        await source.shutdown()
    }

    @Test("cancel-before-response")
    func cancelBeforeResponse() async throws {
        let server = HTTPServer([.open([])])
        let source = try source(server)
        let journal = Journal()
        journal.follow(source)
        source.connect()
        try await reach(1, server)
        source.disconnect()
        #expect(source.readyState == .closed)
        server.send(String(decoding: Say.stream(try body("cancel-before-response")), as: UTF8.self))
        await source.shutdown()
        server.clock.advance(by: .seconds(1))
        #expect(source.readyState == .closed)
        #expect(journal.text.isEmpty && server.ends == 1 && server.requests.count == 1)
    }

    @Test(
        "invalid-url",
        arguments: ["http://this is invalid/", "http:///x", "", "http://a:99999/", "http://a/#b"]
    )
    func invalidURL(url: String) {
        #expect { try EventSource(url: url) } throws: { error in
            (error as? WaybillError)?.code == .invalidEntry
        }
        #expect(throws: WaybillError.self) { try EventSource(url: "ftp://a/") }
    }

    // MARK: Known faults of other libraries

    @Test(
        "What tripped others: comments first, mixed and cut line ends, empty blocks, a byte order mark"
    )
    func oldFaults() async throws {
        let server = HTTPServer([.open(Say.stream(""))])
        let source = try source(server)
        let journal = Journal()
        journal.follow(source)
        source.addEventListener("empty") { journal.note("empty \($0.data)") }
        source.connect()
        try await reach(1, server)
        let stream =
            "\u{FEFF}: comment first\nid: 1\ndata: a\r\ndata: b\rdata: c\n\n\n\r\n\r\r"
            + "event: empty\n\ndata: x\u{2028}y\u{85}z\n\n: only a comment\n\nid\ndata: end\n\n"
        for scalar in stream.unicodeScalars { server.send(String(scalar)) }
        try await journal.wait(for: 4)
        #expect(
            journal.text == [
                "open open", "message a\nb\nc 1", "message x\u{2028}y\u{85}z 1", "message end ",
            ]
        )
        await source.shutdown()
    }

    @Test(
        "The last id and the time to wait are kept over reconnections that say nothing about them"
    )
    func kept() async throws {
        let server = HTTPServer([
            .close(Say.stream("retry: 50\nid: 1\ndata: a\n\n")), .close(Say.stream("data: b\n\n")),
            .open(Say.stream("data: c\n\n")),
        ])
        let source = try source(server, headers: ["X-A": "1"]) {
            $0.headers = ["x-a": "2", "B": "3"]
        }
        let journal = Journal()
        journal.follow(source)
        source.connect()
        try await reach(3, server)
        try await journal.wait(for: 8)
        #expect(
            journal.text == [
                "open open", "message a 1", "200 again fine connecting",
                "open open", "message b 1", "200 again fine connecting",
                "open open", "message c 1",
            ]
        )
        #expect(source.lastEventID == "1")
        let heads = server.requests.map(\.head)
        #expect(heads.map { $0.headers.first("last-event-id") } == [nil, "1", "1"])
        #expect(heads.allSatisfy { $0.target == "/stream?a=b" && $0.headers.first("b") == "3" })
        #expect(heads.allSatisfy { $0.headers.all("x-a") == ["1"] })
        await source.shutdown()
        #expect(server.ends == 3)
    }

    @Test(
        "How an attempt ended: the status, whether another one follows, and why",
        arguments: [
            (HTTPServer.Answer.close(Say.status(204)), "204 over fine closed"),
            (.close(Say.status(404)), "404 over rejected closed"),
            (.close(Say.status(401)), "401 over unauthorized closed"),
            (
                .close(Say.status(200, "Content-Type: text/plain\r\n", body: "data: a\n\n")),
                "200 over protocolViolation closed"
            ),
            (.close(Say.status(503)), "503 again connectionRefused connecting"),
            (.refuse, "none again connectionRefused connecting"),
            (.close([]), "none again connectionLost connecting"),
        ]
    )
    func completions(answer: HTTPServer.Answer, line: String) async throws {
        let server = HTTPServer([answer])
        let source = try source(server)
        let journal = Journal()
        journal.follow(source)
        source.connect()
        try await journal.wait(for: 1)
        #expect(journal.text == [line])
        await source.shutdown()
    }

    // MARK: The four examples of inaka's EventSource

    @Test("What the documentation of the older library promises")
    func examples() async throws {
        let server = HTTPServer([
            .open(
                Say.stream(
                    """
                    id: event-id
                    event: event-name
                    data: event-data

                    id: event-id
                    data: event-data

                    data: event-data

                    id: event-id
                    data: event-data-1
                    data: event-data-2
                    data: event-data-3

                    :heartbeat


                    """
                )
            )
        ])
        let source = try source(server)
        let journal = Journal()
        journal.follow(source)
        source.addEventListener("event-name") { event in
            journal.note("\(event.type) \(event.data) \(event.lastEventID)")
        }
        source.connect()
        try await journal.wait(for: 5)
        #expect(
            journal.text == [
                "open open", "event-name event-data event-id", "message event-data event-id",
                "message event-data event-id",
                "message event-data-1\nevent-data-2\nevent-data-3 event-id",
            ]
        )
        await source.shutdown()
    }

    // MARK: Listeners

    @Test("Several listeners for a type, in order, each until it is removed")
    func listeners() async throws {
        let server = HTTPServer([.open(Say.stream(""))])
        let source = try source(server)
        let journal = Journal()
        source.onMessage { journal.note("on \($0.data)") }
        let first = source.addEventListener("message") { journal.note("first \($0.data)") }
        let own = Locked<EventSource.ListenerToken?>(nil)
        let third = Locked<EventSource.ListenerToken?>(nil)
        let second = source.addEventListener("message") { [weak source] event in
            journal.note("second \(event.data)")
            // The listener removes itself, and one that follows it.
            for token in [own.withLock { $0 }, third.withLock { $0 }].compactMap({ $0 }) {
                source?.removeEventListener(token)
            }
        }
        own.withLock { $0 = second }
        let last = source.addEventListener("message") { journal.note("third \($0.data)") }
        third.withLock { $0 = last }
        source.addEventListener("note") { journal.note("note \($0.data)") }
        source.connect()
        try await reach(1, server)
        server.send("data: 1\n\nevent: note\ndata: 2\n\n")
        try await journal.wait(for: 4)
        source.removeEventListener(first)
        source.removeEventListener(first)
        server.send("data: 3\n\nevent: other\ndata: 4\n\nevent: note\ndata: 5\n\n")
        try await journal.wait(for: 6)
        #expect(journal.text == ["on 1", "first 1", "second 1", "note 2", "on 3", "note 5"])
        await source.shutdown()
    }

    @Test("It connects once at a time, from a given id, and again after its end")
    func connecting() async throws {
        let server = HTTPServer([
            .open(Say.stream("id: 8\ndata: a\n\n")), .open(Say.stream("data: b\n\n")),
            .close(Say.status(204)), .open(Say.stream("data: c\n\n")),
        ])
        let source = try source(server)
        let journal = Journal()
        journal.follow(source)
        source.connect(lastEventID: "7")
        source.connect(lastEventID: "x")
        try await journal.wait(for: 2)
        source.disconnect()
        source.disconnect()
        source.connect()
        try await journal.wait(for: 4)
        // The same from within a handler.
        source.onComplete { [weak source] completion in
            journal.note("\(completion.status ?? 0)")
            source?.connect(lastEventID: "")
        }
        source.disconnect()
        source.connect()
        try await journal.wait(for: 7)
        #expect(
            journal.text == [
                "open open", "message a 8", "open open", "message b 8", "204", "open open",
                "message c ",
            ]
        )
        let ids = server.requests.map { $0.head.headers.first("last-event-id") }
        #expect(ids == ["7", "8", "8", nil])
        await source.shutdown()
    }

    @Test("Handlers run one at a time")
    func oneAtATime() async throws {
        let server = HTTPServer([.open(Say.stream("")), .open(Say.stream("data: x\n\n"))])
        let source = try source(server)
        let running = Locked(0)
        let journal = Journal()
        source.onMessage { _ in
            let count = running.withLock { count in
                count += 1
                return count
            }
            for _ in 0..<1_000 { _ = journal.text }
            running.withLock { $0 -= 1 }
            journal.note("\(count)")
        }
        source.connect()
        try await reach(1, server)
        for _ in 0..<20 { server.send("data: x\n\n") }
        try await journal.wait(for: 5)
        source.disconnect()
        source.connect()
        try await reach(2, server)
        await source.shutdown()
        #expect(Set(journal.text) == ["1"])
    }

    @Test("A source that is paused by a hint asks again when the pause is over, and says so")
    func paused() async throws {
        let server = HTTPServer([
            .open(Say.stream("id: 1\ndata: a\n\n")), .open(Say.stream("id: 2\ndata: b\n\n")),
        ])
        let hints = ConnectionHints()
        let source = try source(server) { $0.hints = [hints] }
        let journal = Journal()
        journal.follow(source)
        source.connect()
        try await journal.wait(for: 2)
        hints.send(.pause)
        try await journal.wait(for: 3)
        hints.send(.resume)
        try await journal.wait(for: 5)
        await source.shutdown()
        #expect(
            journal.text == [
                "open open", "message a 1", "200 again fine connecting", "open open", "message b 2",
            ]
        )
    }

    // MARK: The end

    @Test("After a disconnect nothing keeps the source, its handlers or its connection")
    func letGo() async throws {
        final class Probe: Sendable {}
        let server = HTTPServer([.open(Say.stream("data: a\n\n"))])
        let journal = Journal()
        weak var weakSource: EventSource?
        weak var weakProbe: Probe?
        do {
            let source = try source(server)
            let probe = Probe()
            weakSource = source
            weakProbe = probe
            source.onMessage { event in
                _ = probe
                journal.note(event.data)
            }
            source.connect()
            try await journal.wait(for: 1)
            await source.shutdown()
        }
        #expect(weakSource == nil && weakProbe == nil && server.ends == 1)
    }

    @Test("A source without references closes its connection")
    func abandoned() async throws {
        let server = HTTPServer([.open(Say.stream("data: a\n\n"))])
        let journal = Journal()
        do {
            let source = try source(server)
            source.onMessage { journal.note($0.data) }
            source.connect()
            try await journal.wait(for: 1)
            #expect(source.readyState == .open)
        }
        try await waitUntil { server.ends != 0 }
    }
}
