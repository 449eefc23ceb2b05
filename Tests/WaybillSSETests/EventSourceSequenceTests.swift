import Dispatch
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

/// The events of a source as a sequence, listeners with a context of their own, and the reconnection time.
@Suite("Sequences and listeners of a source", .inSimulation, .timeLimit(.minutes(30)))
struct EventSourceSequenceTests {
    private func source(
        _ server: HTTPServer,
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) throws -> EventSource {
        var configuration = SSEConfiguration()
        change(&configuration)
        let timers = server.clock.linkTimers
        return try EventSource(
            url: #require(URL(string: "http://example.com/stream")),
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

    private func take(
        _ count: Int,
        _ iterator: inout EventSource.Events.AsyncIterator
    ) async throws -> [String] {
        var lines: [String] = []
        while lines.count < count, let event = try await iterator.next() {
            lines.append("\(event.type) \(event.data) \(event.lastEventID)")
        }
        return lines
    }

    /// The data of all events to the end of a sequence.
    private func rest(_ events: EventSource.Events) async throws -> [String] {
        var found: [String] = []
        for try await event in events { found.append(event.data) }
        return found
    }

    private func text(_ numbers: ClosedRange<Int>) -> String {
        numbers.map { "id: \($0)\ndata: \($0)\n\n" }.joined()
    }

    // MARK: The sequence

    @Test("A sequence gives events of any type over reconnections, and ends at the disconnect")
    func sequence() async throws {
        let server = HTTPServer([
            .close(Say.stream(": a comment\nid: 1\ndata: a\n\nevent: note\ndata: b\n\n")),
            .open(Say.stream("id: 2\ndata: c\n\n")),
        ])
        let source = try source(server)
        let (events, others) = (source.events(), source.events())
        source.connect()
        var iterator = events.makeAsyncIterator()
        let first = try await take(2, &iterator)
        #expect(first == ["message a 1", "note b 1"])
        try await reach(2, server)
        let second = try await take(1, &iterator)
        #expect(second == ["message c 2"])
        source.disconnect()
        let last = try await take(1, &iterator)
        #expect(last.isEmpty)
        #expect(try await rest(others) == ["a", "b", "c"])
        await source.shutdown()
    }

    @Test("The error of the source that gives up is thrown once; an end without one is only an end")
    func failure() async throws {
        let server = HTTPServer([.close(Say.status(404)), .close(Say.status(204))])
        let source = try source(server)
        let events = source.events()
        source.connect()
        do {
            for try await _ in events { Issue.record("an event") }
            Issue.record("no error")
        } catch let error as WaybillError {
            #expect(error.code == .rejected)
        }
        #expect(try await rest(events).isEmpty)
        #expect(source.readyState == .closed)
        let more = source.events()
        source.connect()
        #expect(try await rest(more).isEmpty)
        #expect(server.requests.count == 2)
        await source.shutdown()
    }

    @Test("Events that wait at the end are delivered before it", arguments: [false, true])
    func waiting(isDisconnected: Bool) async throws {
        let answer = Say.stream(text(1...3))
        let server = HTTPServer([isDisconnected ? .open(answer) : .close(answer)])
        let source = try source(server) { $0.reconnection = .never }
        let events = source.events()
        source.connect()
        try await waitUntil { source.lastEventID == "3" }
        if isDisconnected { source.disconnect() }
        try await waitUntil { source.readyState == .closed }
        #expect(try await rest(events) == ["1", "2", "3"])
        await source.shutdown()
    }

    @Test("A sequence that is not read holds the handlers back, and loses nothing")
    func heldBack() async throws {
        let server = HTTPServer([
            .open(Say.stream(text(1...600))), .open(Say.stream(text(1...600))),
        ])
        let source = try source(server)
        let count = Locked(0)
        source.onMessage { _ in count.withLock { $0 += 1 } }
        let events = source.events()
        source.connect()
        try await waitUntil { count.withLock { $0 } == 256 }
        await untilQuiet()
        #expect(count.withLock { $0 } == 256)
        var iterator = events.makeAsyncIterator()
        let found = try await take(600, &iterator)
        #expect(found == (1...600).map { "message \($0) \($0)" })
        try await waitUntil { count.withLock { $0 } == 600 }
        source.disconnect()

        // One that is full does not keep the source from its end.
        let unread = source.events()
        source.connect()
        try await waitUntil { count.withLock { $0 } == 856 }
        await source.shutdown()
        #expect(try await rest(unread).count == 256)
    }

    @Test("One that is released lets the handlers go on")
    func released() async throws {
        let server = HTTPServer([.open(Say.stream(text(1...600)))])
        let source = try source(server)
        let count = Locked(0)
        source.onMessage { _ in count.withLock { $0 += 1 } }
        do {
            let events = source.events()
            source.connect()
            try await waitUntil { count.withLock { $0 } == 256 }
            withExtendedLifetime(events) {}
        }
        try await waitUntil { count.withLock { $0 } == 600 }
        await source.shutdown()
    }

    @Test("More events than the buffering allows end the source with an error")
    func overflow() async throws {
        let server = HTTPServer([.open(Say.stream(""))])
        let source = try source(server) { $0.buffering = BufferPolicy(.fail, messageLimit: 2) }
        let codes = Locked<[String]>([])
        source.onComplete { completion in
            codes.withLock { $0.append(completion.error?.code.name ?? "fine") }
        }
        let events = source.events()
        source.connect()
        try await reach(1, server)
        server.send(text(1...5))
        await #expect(throws: WaybillError.self) { try await rest(events) }
        try await waitUntil { codes.withLock { $0 } == [WaybillError.Code.slowConsumer.name] }
        #expect(source.readyState == .closed)
        await source.shutdown()
    }

    @Test("A sequence keeps its source, and a task that is cancelled ends its loop alone")
    func lifetime() async throws {
        let server = HTTPServer([.open(Say.stream(text(1...1)))])
        do {
            let events: EventSource.Events
            weak var weakSource: EventSource?
            do {
                let source = try source(server)
                weakSource = source
                events = source.events()
                source.connect()
            }
            var iterator = events.makeAsyncIterator()
            let first = try await take(1, &iterator)
            #expect(first == ["message 1 1"])
            let task = Task { for try await _ in events {} }
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(weakSource?.readyState == .open)
            server.send(text(2...2))
            let second = try await take(1, &iterator)
            #expect(second == ["message 2 2"])
            #expect(server.ends == 0)
            withExtendedLifetime(events) {}
        }
        try await waitUntil { server.ends == 1 }
    }

    // MARK: The reconnection time

    @Test("The reconnection time is the server's, within the configuration's bounds")
    func retryTime() async throws {
        let server = HTTPServer([
            .close(Say.stream("retry: 50\ndata: a\n\n")), .open(Say.stream("data: b\n\n")),
            .open(Say.stream("")),
        ])
        let source = try source(server) {
            $0.reconnection.initialDelay = .milliseconds(700)
            $0.reconnection.maximumServerDelay = .seconds(5)
        }
        let times = Locked<[Duration]>([])
        source.onMessage { [weak source] _ in
            guard let time = source?.retryTime else { return }
            times.withLock { $0.append(time) }
        }
        #expect(source.retryTime == .milliseconds(700))
        source.connect()
        try await reach(2, server)
        try await waitUntil { times.withLock { $0.count } == 2 }
        #expect(times.withLock { $0 } == [.milliseconds(50), .milliseconds(50)])
        server.send("retry: 6000\ndata: c\n\n")
        try await waitUntil { source.retryTime == .seconds(5) }
        source.disconnect()
        #expect(source.retryTime == .seconds(5))
        source.connect()
        #expect(source.retryTime == .milliseconds(700))
        await source.shutdown()
    }

    // MARK: Listeners

    @Test("Listeners of one type are removed together")
    func removed() async throws {
        let server = HTTPServer([.open(Say.stream(""))])
        let source = try source(server)
        let lines = Locked<[String]>([])
        @Sendable func note(_ line: String) { lines.withLock { $0.append(line) } }
        source.onMessage { note("on \($0.data)") }
        source.addEventListener("message") { note("first \($0.data)") }
        source.addEventListener("message") { note("second \($0.data)") }
        source.addEventListener("note") { note("note \($0.data)") }
        source.connect()
        try await reach(1, server)
        server.send("data: 1\n\n")
        try await waitUntil { lines.withLock { $0.count } == 3 }
        source.removeEventListeners(named: "message")
        source.removeEventListeners(named: "other")
        server.send("data: 2\n\nevent: note\ndata: 3\n\n")
        try await waitUntil { lines.withLock { $0.count } == 5 }
        #expect(lines.withLock { $0 } == ["on 1", "first 1", "second 1", "on 2", "note 3"])
        await source.shutdown()
    }

    @Test("An asynchronous listener returns before the next handler is called")
    func asynchronous() async throws {
        let server = HTTPServer([.open(Say.stream("data: 1\n\ndata: 2\n\n"))])
        let source = try source(server)
        let lines = Locked<[String]>([])
        @Sendable func note(_ line: String) { lines.withLock { $0.append(line) } }
        source.onMessage { note("on \($0.data)") }
        source.addEventListener("message") { event in
            note("begin \(event.data)")
            for _ in 0..<10 { await Task.yield() }
            note("end \(event.data)")
        }
        source.addEventListener("message") { note("next \($0.data)") }
        source.connect()
        try await waitUntil { lines.withLock { $0.count } == 8 }
        let expected = ["1", "2"].flatMap {
            ["on \($0)", "begin \($0)", "end \($0)", "next \($0)"]
        }
        #expect(lines.withLock { $0 } == expected)
        await source.shutdown()
    }

    /// The key of a queue's name.
    ///
    /// `@unchecked Sendable`, because: it is never changed. Apple's Dispatch does not say so of its type.
    private final class Key: @unchecked Sendable {
        let name = DispatchSpecificKey<String>()
    }

    @Test(
        "A listener on a queue is called there, in order, until it is removed there",
        .outsideSimulation
    )
    func queue() async throws {
        let server = HTTPServer([.open(Say.stream(text(1...300)))])
        let source = try source(server)
        let key = Key()
        let queue = DispatchQueue(label: "mine")
        queue.setSpecific(key: key.name, value: "mine")
        let lines = Locked<[String]>([])
        let count = Locked(0)
        let own = Locked<EventSource.ListenerToken?>(nil)
        let token = source.addEventListener("message", on: queue) { [weak source] event in
            let place = DispatchQueue.getSpecific(key: key.name) ?? "elsewhere"
            lines.withLock { $0.append("\(event.data) \(place)") }
            guard event.data == "200", let token = own.withLock({ $0 }) else { return }
            source?.removeEventListener(token)
        }
        own.withLock { $0 = token }
        source.addEventListener("message") { _ in count.withLock { $0 += 1 } }
        source.connect()
        try await waitUntil { count.withLock { $0 } == 300 }
        #expect(lines.withLock { $0 } == (1...200).map { "\($0) mine" })
        await source.shutdown()
    }
}
