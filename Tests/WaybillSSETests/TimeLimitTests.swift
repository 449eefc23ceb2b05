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
