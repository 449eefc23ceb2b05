import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireTestSupport

@Suite("Event stream transport: time limits", .inSimulation, .timeLimit(.minutes(30)))
struct TimeLimitTests {
    @Test("A refusal whose body never ends is a refusal all the same, once its time is over")
    func endlessRefusal() async throws {
        let answers = [
            "HTTP/1.1 401 No\r\nContent-Length: 9\r\n\r\nwhy",
            "HTTP/1.1 401 No\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nwhy\r\n",
            "HTTP/1.1 401 No\r\n\r\nwhy",
        ]
        for answer in answers {
            let server = HTTPServer([.open(Array(answer.utf8))])
            let transport = try server.transport()
            async let opening = Provider<StreamEntry>(transport: transport).messages(.listen())
            try await waitUntil { !server.requests.isEmpty }
            // More than the response timeout of ten seconds, one second at a time.
            for _ in 0..<12 {
                server.clock.advance(by: .seconds(1))
                await untilQuiet()
            }
            await #expect(throws: Never.self) { try await waitUntil { server.ends == 1 } }
            if server.ends == 0 { server.endOfStream() }
            do {
                _ = try await opening
                Issue.record("it has opened")
            } catch let error as WaybillError {
                #expect(error.code == .unauthorized)
                #expect((error.underlying as? HTTPRefusal)?.body.text == "why")
            }
            await transport.shutdown()
        }
    }

    @Test("The time for a response counts once over all redirects")
    func redirected() async throws {
        let server = HTTPServer([.open([]), .open([])])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        let sending = Task { try await provider.request(.post(.text("x"))) }
        try await waitUntil { server.requests.count == 1 }
        server.clock.advance(by: .seconds(20))
        await untilQuiet()
        server.send(Say.status(307, "Location: http://other.example/x\r\n"), on: 0)
        try await waitUntil { server.requests.count == 2 }
        try await expectEnd(of: sending, after: .seconds(10), at: server)
        await transport.shutdown()
    }

    @Test("The wait for a free connection counts, too")
    func waited() async throws {
        let server = HTTPServer([.open([]), .open([])])
        let transport = try server.transport { $0.limits.connectionsPerHost = 1 }
        let provider = Provider<StreamEntry>(transport: transport)
        let first = Task { try await provider.request(.post(.text("x"))) }
        try await waitUntil { server.requests.count == 1 }
        let second = Task { try await provider.request(.post(.text("y"))) }
        await untilQuiet()
        server.clock.advance(by: .seconds(20))
        await untilQuiet()
        server.send(Say.status(200), on: 0)
        _ = try await first.value
        try await waitUntil { server.requests.count == 2 }
        try await expectEnd(of: second, after: .seconds(10), at: server)
        await transport.shutdown()
    }

    /// Expects that a request times out after this time, and not before.
    private func expectEnd(
        of request: Task<Receipt, any Error>,
        after time: Duration,
        at server: HTTPServer
    ) async throws {
        await untilQuiet()
        server.clock.advance(by: time - .milliseconds(1))
        await untilQuiet()
        #expect(server.ends == 0)
        server.clock.advance(by: .milliseconds(1))
        await untilQuiet()
        #expect(server.ends == 1, "it goes on waiting")
        // However long it waits, it ends.
        server.clock.advance(by: .seconds(3_600))
        await expectError(.timedOut) { try await request.value }
    }

    @Test("The time for a response counts for all of it, however steadily it drips")
    func drippingResponse() async throws {
        let head = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"
        let server = HTTPServer([.open(Array(head.utf8))])
        let transport = try server.transport()
        async let sending = Provider<StreamEntry>(transport: transport).request(.post(.text("x")))
        try await waitUntil { !server.requests.isEmpty }
        for _ in 0..<32 {
            server.clock.advance(by: .seconds(1))
            server.send("a")
            await untilQuiet()
        }
        await #expect(throws: Never.self) { try await waitUntil { server.ends == 1 } }
        if server.ends == 0 { server.endOfStream() }
        do {
            _ = try await sending
            Issue.record("it has been answered")
        } catch let error as WaybillError {
            #expect(error.code == .timedOut)
        }
        await transport.shutdown()
    }
}
