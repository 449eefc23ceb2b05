import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// The examples of the page "Event streams".
@Suite("Guide: event streams", .inSimulation, .timeLimit(.minutes(30))) struct EventStreamExamples {
    @Test("Heads, comments and a restart")
    func streams() async throws {
        let broker = LoopbackBroker()
        let transport = try SSETransport(to: broker)
        var seen = transport.streamEvents().makeAsyncIterator()
        let messages = try await transport.subscribe(Request(topic: "news", command: .subscribe))
        guard case .opened("news", let response, _)? = await seen.next() else {
            Issue.record("no head")
            return
        }
        #expect(response.status == 200)
        guard case .comment("news", "waybill-loopback", _)? = await seen.next() else {
            Issue.record("no comment")
            return
        }
        broker.publish("1", to: "news")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "1")
        transport.restart(topic: "news")
        guard case .opened("news", _, _)? = await seen.next() else {
            Issue.record("no second head")
            return
        }
        broker.publish("2", to: "news")
        #expect(try await iterator.next()?.text == "2")
        await transport.shutdown()
    }

    @Test("An event source with a method, a body and a handler for each thing")
    func source() async throws {
        let source = try EventSource(
            url: "http://127.0.0.1:9/search",
            method: "POST",
            body: #"{"about":"weather"}"#,
            contentType: "application/json"
        )
        source.onResponse { response in print(response.status, response.headers["X-Node"] ?? "") }
        source.onComment { text in print("comment", text) }
        source.onEvent { event in print(event.type, event.data) }
        source.restart()
        #expect(source.readyState == .closed)
    }
}
