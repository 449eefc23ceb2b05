import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireTestSupport

@Suite("Event stream transport: waits and ends", .inSimulation, .timeLimit(.minutes(30)))
struct WaitTests {
    /// Waits until a state of this kind is reported.
    private func state(
        _ states: inout ConnectionStates.AsyncIterator,
        where isWanted: (ConnectionState) -> Bool
    ) async {
        while let state = await states.next(), !isWanted(state) {}
    }

    private func isWaiting(_ state: ConnectionState) -> Bool {
        if case .waiting = state { true } else { false }
    }

    @Test("A server that has set no time at all and is gone is asked again after a pause")
    func zeroTime() async throws {
        let server = HTTPServer([
            .close(Say.stream("retry: 0\ndata: a\n\n")), .refuse, .open(Say.stream("data: b\n\n")),
        ])
        let transport = try server.transport()
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        await state(&states, where: isWaiting)
        await state(&states, where: isWaiting)
        await untilQuiet()
        #expect(server.endpoints.count == 2)
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(10)) }) {
            server.endpoints.count >= 3
        }
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        #expect(try await iterator.next()?.text == "b")
        await transport.shutdown()
    }

    @Test("A stream that opens only to end is not asked for again without a pause")
    func emptyStreams() async throws {
        let server = HTTPServer(
            Array(repeating: .close(Say.stream("retry: 0\n\n")), count: 50)
                + [.open(Say.stream("data: a\n\n"))]
        )
        let transport = try server.transport()
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        await state(&states, where: isWaiting)
        await untilQuiet()
        #expect(server.endpoints.count == 1)
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("Retry-After makes the wait longer, never shorter")
    func retryAfterZero() async throws {
        let server = HTTPServer([
            .close(Say.stream("retry: 0\ndata: a\n\n")),
            .close(Say.status(503, "Retry-After: 0\r\n")), .open(Say.stream("")),
        ])
        let transport = try server.transport()
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        await state(&states, where: isWaiting)
        await state(&states, where: isWaiting)
        await untilQuiet()
        #expect(server.requests.count == 2)
        withExtendedLifetime(messages) {}
        await transport.shutdown()
    }

    @Test("A header that says where to begin holds for the first attempt alone")
    func lastEventIDHeader() async throws {
        let server = HTTPServer([
            .close(Say.stream("retry: 0\nid: 8\ndata: a\n\n")), .open(Say.stream("data: b\n\n")),
        ])
        let transport = try server.transport { $0.headers = ["last-event-id": "7"] }
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        var iterator = messages.makeAsyncIterator()
        for text in ["a", "b"] { #expect(try await iterator.next()?.text == text) }
        #expect(server.requests.map { $0.head.headers.all("last-event-id") } == [["7"], ["8"]])
        await transport.shutdown()
    }

    @Test("Headers of the configuration are checked as an entry's are")
    func configuredHeaders() async throws {
        for headers: Headers in [["Host": "x"], ["A": "b\r\nc"], ["content-length": "1"]] {
            let server = HTTPServer([])
            let transport = try server.transport { $0.headers = headers }
            let provider = Provider<StreamEntry>(transport: transport)
            for body in [
                { _ = try await provider.messages(.listen()) },
                { try await provider.request(.post(.text("x"))) },
            ] {
                let error = await #expect(throws: WaybillError.self) { try await body() }
                #expect(error?.code == .invalidEntry)
            }
            #expect(server.endpoints.isEmpty)
            #expect(throws: WaybillError.self) {
                try EventSource(url: "http://example.com/", headers: headers)
            }
            await transport.shutdown()
        }
    }

    @Test("Whatever becomes of another stream, one that is open counts")
    func severalStreams() async throws {
        let server = HTTPServer([
            .open(Say.stream("data: a\n\n")), .close(Say.status(404)),
            .close(Say.stream("data: b\n\n")),
        ])
        let transport = try server.transport()
        var states = transport.states.makeAsyncIterator()
        let provider = Provider<StreamEntry>(transport: transport)
        let open = try await provider.messages(.listen())
        await #expect(throws: WaybillError.self) { _ = try await provider.messages(.listen("x")) }
        #expect("\(transport.states.current)" == "connected")
        var ended = try await provider.messages(.listen("y")).makeAsyncIterator()
        #expect(try await ended.next()?.text == "b")
        await untilQuiet()
        #expect("\(transport.states.current)" == "connected")
        withExtendedLifetime((open, ended)) {}
        await transport.shutdown()
        var seen: [String] = []
        while seen.last != "disconnected", let state = await states.next() {
            seen.append("\(state)")
        }
        // At the shutdown, the last stream to end may be the one that waits.
        seen.removeAll { $0.hasPrefix("waiting") }
        #expect(seen == ["idle", "connecting (attempt 1)", "connected", "disconnected"])
    }

    @Test("The state at the end says why, once")
    func cause() async throws {
        let server = HTTPServer([
            .close(Say.stream("retry: 0\ndata: a\n\n")), .close(Say.status(404)),
        ])
        let transport = try server.transport()
        var states = transport.states.makeAsyncIterator()
        let messages = try await Provider<StreamEntry>(transport: transport).messages(.listen())
        let error = await #expect(throws: WaybillError.self) { for try await _ in messages {} }
        #expect(error?.code == .rejected)
        await transport.shutdown()
        var causes: [WaybillError.Code?] = []
        while causes.isEmpty, let state = await states.next() {
            if case .disconnected(let cause) = state { causes.append(cause?.code) }
        }
        #expect(causes == [.rejected])
        #expect("\(transport.states.current)".hasPrefix("disconnected"))
        if case .disconnected(let cause) = transport.states.current {
            #expect(cause?.code == .rejected)
        }
    }
}
