import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireTestSupport

/// The web platform's cases that need more than the parser.
@Suite("Event stream transport: the web platform's cases", .inSimulation, .timeLimit(.minutes(30)))
struct WebPlatformTests {
    static let cases = WebPlatformCase.all.filter {
        ["reconnect", "fail-connection", "redirect", "request"].contains($0.kind)
    }

    @Test("There are cases")
    func count() {
        #expect(Self.cases.count == 28)
    }

    @Test("Each is answered connection by connection, and gives its events", arguments: cases)
    func webPlatform(row: WebPlatformCase) async throws {
        // A further request is answered by 204, which ends the stream.
        let answers = row.responses.map { HTTPServer.Answer.close($0.rawBytes) }
        let server = HTTPServer(answers + [.close(Say.status(204))])
        let transport = try server.transport("http://example.com/") {
            $0.reconnection.initialDelay = .milliseconds(2)
            // The clock below moves on even when the client's tasks do not run.
            $0.timeouts.connect = .seconds(1_000_000)
            $0.timeouts.confirmation = .seconds(1_000_000)
        }
        let provider = Provider<StreamEntry>(transport: transport)
        // Moves the clock on as long as the test runs.
        let ticking = Task {
            while !Task.isCancelled {
                server.clock.advance(by: .milliseconds(50))
                await Task.yield()
            }
        }
        defer { ticking.cancel() }
        if row.kind == "fail-connection" {
            await #expect(throws: WaybillError.self) {
                try await provider.messages(.listen("stream"))
            }
            #expect(server.requests.count == 1)
        } else {
            var events: [WebPlatformCase.Event] = []
            for try await message in try await provider.messages(.listen("stream")) {
                events.append(
                    .init(
                        type: message[.eventType] ?? "message",
                        data: message.text ?? "",
                        lastEventID: message.id?.description ?? ""
                    )
                )
            }
            #expect(events == row.events)
            #expect(server.requests.count >= row.responses.count)
        }
        for (response, request) in zip(row.responses, server.requests) {
            guard let expected = response.request else { continue }
            let head = request.head
            if let method = expected.method { #expect(head.method == method) }
            if let path = expected.path { #expect(head.target == path) }
            for (name, value) in expected.headers ?? [:] {
                #expect(head.headers.first(name) == value)
            }
            for name in expected.absentHeaders ?? [] { #expect(head.headers.first(name) == nil) }
        }
        await transport.shutdown()
    }
}
