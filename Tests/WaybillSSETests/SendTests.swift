import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

@Suite("Event stream transport: sends", .inSimulation, .timeLimit(.minutes(30)))
struct SendTests {
    private struct Note: Codable, Equatable, Sendable {
        var text: String
    }

    @Test("A send is a POST, its response the receipt and the typed reply")
    func post() async throws {
        let json = "Content-Type: application/json\r\n"
        let server = HTTPServer([.open(Say.status(201, json, body: #"{"text":"back"}"#))])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        let reply: Note = try await provider.request(.post(.json(Note(text: "there"))))
        #expect(reply == Note(text: "back"))
        let request = try #require(server.requests.first)
        #expect(request.head.method == "POST")
        #expect(request.head.target == "/api/messages")
        #expect(request.head.headers.first("content-type") == "application/json")
        #expect(String(decoding: request.body, as: UTF8.self) == #"{"text":"there"}"#)
        await transport.shutdown()
    }

    @Test("One connection serves one request after another, as long as the server keeps it")
    func keptAlive() async throws {
        let server = HTTPServer([
            .open(Say.status(200)), .open(Say.status(200)),
            .open(Say.status(200, "Connection: close\r\n")), .open(Say.status(200)),
        ])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        for _ in 0..<4 { try await provider.request(.post(.text("x"))) }
        #expect(server.requests.count == 4)
        #expect(server.endpoints.count == 2)
        await transport.shutdown()
    }

    @Test(
        "Methods come from the entry; a body that changes nothing is sent again when a kept connection is dead"
    )
    func methods() async throws {
        let server = HTTPServer([
            .open(Say.status(200)), .reset([]), .open(Say.status(200)), .reset([]),
        ])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        let put = StreamEntry.command(.send(.method("PUT")), topic: "t", body: .text("x"))
        try await provider.request(put)
        try await provider.request(put)
        #expect(server.requests.map(\.head.method) == ["PUT", "PUT", "PUT"])
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.post(.text("once")))
        }
        #expect(error?.code == .connectionLost)
        // Without a length, the client cannot know whether the bytes before a reset are complete.
        let cut = HTTPServer([.reset(Array("HTTP/1.1 200 OK\r\n\r\nhalf".utf8))])
        let half = try cut.transport()
        let loss = await #expect(throws: WaybillError.self) {
            try await Provider<StreamEntry>(transport: half).request(.post(.text("x")))
        }
        #expect(loss?.code == .connectionLost)
        await half.shutdown()
        let tunnel = StreamEntry.command(.send(.method("CONNECT")), topic: "t")
        let unsupported = await #expect(throws: WaybillError.self) {
            try await provider.request(tunnel)
        }
        #expect(unsupported?.code == .unsupported)
        let bad = StreamEntry.command(.send(.method("P T")), topic: "t")
        let refused = await #expect(throws: WaybillError.self) { try await provider.request(bad) }
        #expect(refused?.code == .invalidEntry)
        await transport.shutdown()
    }

    @Test("Statuses are typed errors that interceptors can retry")
    func statuses() async throws {
        struct Retry: Interceptor {
            func retry(
                _ request: Request,
                after error: WaybillError,
                context: InterceptorContext
            ) async -> RetryDecision {
                error.code == .connectionRefused ? .retry(count: 2, delay: .zero) : .noOpinion
            }
        }
        let server = HTTPServer([
            .open(Say.status(503)), .open(Say.status(429)), .open(Say.status(200)),
            .open(Say.status(403, body: "no")),
        ])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport).intercepted(Retry())
        let receipt = try await provider.request(.post(.text("x")))
        #expect(receipt.reason == "200 Words")
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.post(.text("x")))
        }
        #expect(error?.code == .unauthorized)
        #expect((error?.underlying as? HTTPRefusal)?.body.text == "no")
        await transport.shutdown()
    }

    @Test("A response over the limit, or none in time, is an error and ends the connection")
    func limits() async throws {
        let server = HTTPServer([
            .open(Say.status(200, body: String(repeating: "x", count: 100))), .open([]),
        ])
        let transport = try server.transport { $0.limits.replySize = 50 }
        let provider = Provider<StreamEntry>(transport: transport)
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.post(.text("x")))
        }
        #expect(error?.code == .limitExceeded)
        let isOver = Locked(false)
        let task = Task {
            defer { isOver.withLock { $0 = true } }
            try await provider.request(.post(.text("x")))
        }
        try await waitUntil { server.requests.count >= 2 }
        let begin = server.clock.now
        try await waitUntil(moving: { server.clock.advance(by: .seconds(1)) }) {
            isOver.withLock { $0 }
        }
        #expect(begin.duration(to: server.clock.now) >= .seconds(30))
        let late = await #expect(throws: WaybillError.self) { try await task.value }
        #expect(late?.code == .timedOut)
        await transport.shutdown()
        let over = await #expect(throws: WaybillError.self) {
            try await provider.request(.post(.text("x")))
        }
        #expect(over?.code == .shutDown)
    }
}
