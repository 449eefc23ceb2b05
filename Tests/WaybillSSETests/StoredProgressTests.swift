import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// How far the app has come with a stream, in a store. A transport that follows stands for the next process.
@Suite("Event stream transport: progress in a store", .inSimulation, .timeLimit(.minutes(30)))
struct StoredProgressTests {
    private let store = InMemorySessionStore()

    private func provider(
        _ server: HTTPServer
    ) throws -> (SSETransport, Provider<StreamEntry>) {
        let transport = try server.transport { $0.store = store }
        return (transport, Provider<StreamEntry>(transport: transport))
    }

    private func asked(_ server: HTTPServer) -> [String?] {
        server.requests.map { $0.head.headers.first("last-event-id") }
    }

    @Test("The next process asks from the last event on that the app has taken")
    func taken() async throws {
        let events = "id: 1\ndata: a\n\nid: 2\ndata: b\n\ndata: c\n\nid: 3\ndata: d\n\n"
        let server = HTTPServer([.open(Say.stream(events)), .open(Say.stream(""))])
        let (first, provider) = try provider(server)
        var messages = try await provider.messages(.listen("prices")).makeAsyncIterator()
        #expect(store.lastEventID(of: "prices") == nil)
        for (body, id) in [("a", "1"), ("b", "2"), ("c", "2")] {
            #expect(try await messages.next()?.body.text == body)
            #expect(store.lastEventID(of: "prices") == id)
        }
        await first.shutdown()
        let (second, next) = try self.provider(server)
        _ = try await next.messages(.listen("prices"))
        #expect(asked(server) == [nil, "2"])
        await second.shutdown()
    }

    @Test("An ID that the server takes back is forgotten; one that the app states counts")
    func stated() async throws {
        store.setLastEventID("7", of: "prices")
        let events = "id: 8\ndata: a\n\nid\ndata: b\n\n"
        let server = HTTPServer([.open(Say.stream(events)), .open(Say.stream(""))])
        let (transport, provider) = try provider(server)
        var messages = try await provider.messages(.listen("prices")).makeAsyncIterator()
        for _ in 0..<2 { _ = try await messages.next() }
        #expect(store.lastEventID(of: "prices") == nil)
        store.setLastEventID("9", of: "others")
        _ = try await provider.messages(.listen("others", .lastEventID("")))
        #expect(asked(server) == ["7", nil])
        await transport.shutdown()
    }

    @Test("The buffer's policy counts events with an ID, too")
    func policy() async throws {
        let events = (1...9).map { "id: \($0)\ndata: \($0)\n\n" }.joined()
        let server = HTTPServer([.open(Say.stream(events))])
        let transport = try server.transport {
            $0.store = store
            $0.buffering = BufferPolicy(.dropOldest, messageLimit: 2)
        }
        let messages = try await Provider<StreamEntry>(transport: transport)
            .messages(.listen("prices"))
        await untilQuiet()
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "8")
        #expect(store.lastEventID(of: "prices") == "8")
        await transport.shutdown()
    }

    @Test("A token that an interceptor adds to the URL is no part of the name")
    func token() async throws {
        store.setLastEventID("7", of: "prices?all")
        let server = HTTPServer([.open(Say.stream("id: 8\ndata: a\n\n"))])
        let (transport, provider) = try provider(server)
        var messages = try await provider.intercepted(TokenInURL()).messages(
            .listen("prices?all")
        ).makeAsyncIterator()
        #expect(try await messages.next()?.id == Message.ID("8"))
        #expect(asked(server) == ["7"] && store.lastEventID(of: "prices?all") == "8")
        #expect(server.requests.first?.head.target.contains("token=secret") == true)
        await transport.shutdown()
    }

    @Test("A second stream of the topic begins anew and notes nothing; a failing store is an error")
    func several() async throws {
        store.setLastEventID("7", of: "prices")
        let server = HTTPServer([
            .open(Say.stream("")), .open(Say.stream("id: 9\ndata: a\n\n")),
        ])
        let (transport, provider) = try provider(server)
        let first = try await provider.messages(.listen("prices"))
        var messages = try await provider.messages(.listen("prices")).makeAsyncIterator()
        _ = try await messages.next()
        #expect(asked(server) == ["7", nil] && store.lastEventID(of: "prices") == "7")
        first.cancel()
        await transport.shutdown()
        let failing = try server.transport { $0.store = UnreadableStore() }
        let error = await expectError(.limitExceeded) {
            try await Provider<StreamEntry>(transport: failing).messages(.listen("prices"))
        }
        #expect(error?.underlying is UnreadableStore.Failure && server.requests.count == 2)
        await failing.shutdown()
    }
}

private struct TokenInURL: Interceptor {
    func adapt(_ request: inout Request, context: InterceptorContext) async throws {
        request.topic = request.topic.map { $0 + "&token=secret" }
    }
}

/// A store whose progress cannot be read.
private struct UnreadableStore: SessionStore {
    struct Failure: Error {}

    func insert(_ message: StoredMessage) -> StoredMessage.ID { 1 }
    func remove(_ id: StoredMessage.ID) {}
    func messages() -> [StoredMessage] { [] }
    func removeAll() {}
    func lastEventID(of topic: String) throws -> String? { throw Failure() }
}
