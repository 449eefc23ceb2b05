import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillSSE
import WaybillTesting
import WireCore
import WireTestSupport

/// Connections that sends to a host share.
@Suite("Event stream transport: connections of sends", .inSimulation, .timeLimit(.minutes(30)))
struct PoolTests {
    private static func options(_ timeout: Duration) -> StreamEntry {
        .command(.send(.timeout(timeout)), topic: "messages", body: .text("x"))
    }

    @Test("Many sends at once share six connections, and none is lost")
    func bounded() async throws {
        let count = 300
        let server = HTTPServer(Array(repeating: .open([]), count: count))
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        let sends = (0..<count).map { number in
            Task { () async throws -> String in
                try await provider.request(.post(.text("\(number)")))
            }
        }
        // Each request on each connection gets one answer.
        var answered = 0
        while answered < count {
            try await waitUntil { server.requests.count > answered }
            #expect(server.endpoints.count <= 6)
            for connection in server.unanswered() {
                server.send(Say.status(200, body: "ok"), on: connection)
                answered += 1
            }
        }
        for send in sends { #expect(try await send.value == "ok") }
        #expect(server.requests.count == count)
        #expect(server.endpoints.count == 6)
        let bodies = Set(server.requests.map { String(decoding: $0.body, as: UTF8.self) })
        #expect(bodies == Set((0..<count).map { "\($0)" }))
        await transport.shutdown()
    }

    @Test("A send that waits too long for a connection times out, and is not sent")
    func timedOut() async throws {
        let server = HTTPServer([.open([]), .open(Say.status(200))])
        let transport = try server.transport { $0.limits.connectionsPerHost = 1 }
        let provider = Provider<StreamEntry>(transport: transport)
        async let first: Receipt = provider.request(Self.options(.seconds(1_000)))
        try await waitUntil { server.requests.count >= 1 }
        let second = Task { try await provider.request(Self.options(.seconds(5))) }
        let isOver = Locked(false)
        let watch = Task {
            _ = await second.result
            isOver.withLock { $0 = true }
        }
        try await waitUntil(moving: { server.clock.advance(by: .seconds(1)) }) {
            isOver.withLock { $0 }
        }
        await watch.value
        let error = await #expect(throws: WaybillError.self) { try await second.value }
        #expect(error?.code == .timedOut)
        #expect(server.requests.count == 1)
        server.send(Say.status(200), on: 0)
        _ = try await first
        try await provider.request(Self.options(.seconds(5)))
        #expect(server.endpoints.count == 1)
        await transport.shutdown()
    }

    @Test("A send that is cancelled while it waits leaves its place to the next")
    func cancelled() async throws {
        let server = HTTPServer([.open([]), .open(Say.status(200))])
        let transport = try server.transport { $0.limits.connectionsPerHost = 1 }
        let provider = Provider<StreamEntry>(transport: transport)
        async let first: Receipt = provider.request(.post(.text("first")))
        try await waitUntil { server.requests.count >= 1 }
        let second = Task { try await provider.request(.post(.text("second"))) }
        await untilQuiet()
        async let third: Receipt = provider.request(.post(.text("third")))
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        server.send(Say.status(200), on: 0)
        _ = try await (first, third)
        let bodies = server.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies == ["first", "third"])
        await transport.shutdown()
    }

    @Test("Those that wait hear of the end of the transport")
    func shutDown() async throws {
        let server = HTTPServer([.open([])])
        let transport = try server.transport { $0.limits.connectionsPerHost = 1 }
        let provider = Provider<StreamEntry>(transport: transport)
        let sends = (0..<5).map { _ in Task { try await provider.request(.post(.text("x"))) } }
        try await waitUntil { server.requests.count >= 1 }
        await transport.shutdown()
        for send in sends {
            let error = await #expect(throws: WaybillError.self) { try await send.value }
            #expect(error?.code == .shutDown)
        }
        #expect(server.requests.count == 1)
    }

    @Test("A send that was handed a connection ends with the transport, and the connection with it")
    func shutDownAfterHandOver() async throws {
        let server = HTTPServer([.open([]), .open([])])
        let transport = try server.transport { $0.limits.connectionsPerHost = 1 }
        let provider = Provider<StreamEntry>(transport: transport)
        let sends = (0..<2).map { _ in Task { try await provider.request(.post(.text("x"))) } }
        try await waitUntil { server.requests.count == 1 }
        server.send(Say.status(200), on: 0)
        // The other send now uses the same connection.
        try await waitUntil { server.requests.count == 2 }
        await untilQuiet()
        await transport.shutdown()
        var codes: [WaybillError.Code?] = []
        for send in sends {
            do {
                _ = try await send.value
                codes.append(nil)
            } catch let error as WaybillError { codes.append(error.code) }
        }
        #expect(codes.count { $0 == nil } == 1 && codes.contains(.shutDown))
        #expect(server.endpoints.count == 1 && server.ends == 1)
    }

    @Test("A connection that cannot be made leaves its place to the next")
    func refused() async throws {
        let server = HTTPServer([
            .refuse, .open(Say.status(200)), .reset([]), .open(Say.status(200)),
        ])
        let transport = try server.transport { $0.limits.connectionsPerHost = 1 }
        let provider = Provider<StreamEntry>(transport: transport)
        for code in [WaybillError.Code.connectionRefused, nil, .connectionLost, nil] {
            do {
                try await provider.request(.post(.text("x")))
                #expect(code == nil)
            } catch let error as WaybillError {
                #expect(error.code == code)
            }
        }
        await transport.shutdown()
    }

    @Test("Event streams do not count among the connections of sends")
    func streams() async throws {
        let server = HTTPServer(
            Array(repeating: .open(Say.stream("data: a\n\n")), count: 3) + [.open(Say.status(200))]
        )
        let transport = try server.transport { $0.limits.connectionsPerHost = 1 }
        let provider = Provider<StreamEntry>(transport: transport)
        var open: [Messages<Message>] = []
        for name in ["a", "b", "c"] { open.append(try await provider.messages(.listen(name))) }
        try await provider.request(.post(.text("x")))
        #expect(server.requests.count == 4)
        withExtendedLifetime(open) {}
        await transport.shutdown()
    }

    @Test(
        "A POST that finds the kept connection closing is sent on a fresh one, with no word written before"
    )
    func closing() async throws {
        let count = 200
        let server = HTTPServer(Array(repeating: .close(Say.status(200)), count: count))
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        for number in 0..<count { try await provider.request(.post(.text("\(number)"))) }
        // Each request arrived exactly once.
        let bodies = server.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies == (0..<count).map { "\($0)" })
        await transport.shutdown()
    }

    @Test("A POST that may have arrived is not sent again")
    func once() async throws {
        let server = HTTPServer([.open(Say.status(200)), .reset([]), .open(Say.status(200))])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        try await provider.request(.post(.text("a")))
        let error = await #expect(throws: WaybillError.self) {
            try await provider.request(.post(.text("b")))
        }
        #expect(error?.code == .connectionLost)
        let bodies = server.requests.map { String(decoding: $0.body, as: UTF8.self) }
        #expect(bodies == ["a", "b"])
        await transport.shutdown()
    }

    @Test(
        "A connection is used no longer than the server keeps it",
        arguments: [("timeout=10", 2), ("max=9, timeout = 10", 2), ("timeout=0", 3), ("max=5", 1)]
    )
    func keepAlive(_ field: String, _ connections: Int) async throws {
        let fields = "Keep-Alive: \(field)\r\n"
        let server = HTTPServer(Array(repeating: .open(Say.status(200, fields)), count: 3))
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        try await provider.request(.post(.text("a")))
        server.clock.advance(by: .seconds(8))
        try await provider.request(.post(.text("b")))
        // The server closes the connection half a second later, so the client must not use it any more.
        server.clock.advance(by: .milliseconds(9_500))
        try await provider.request(.post(.text("c")))
        #expect(server.endpoints.count == connections)
        // The client closes connections that it will not use again, although the server has kept them. With
        // "timeout=0" that includes the last one.
        let closed = field == "timeout=0" ? connections : connections - 1
        try await waitUntil { server.ends == closed }
        await transport.shutdown()
    }

    @Test("A request that is made again on a fresh connection has only the rest of its time")
    func rest() async throws {
        let server = HTTPServer([.open(Say.status(200)), .open([]), .open([])])
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        try await provider.request(.post(.text("a")))
        let entry = StreamEntry.command(
            .send(.timeout(.seconds(10)), .method("PUT")),
            topic: "messages",
            body: .text("b")
        )
        let send = Task { try await provider.request(entry) }
        try await waitUntil { server.requests.count == 2 }
        server.clock.advance(by: .seconds(6))
        server.endOfStream()
        try await waitUntil { server.requests.count == 3 }
        await untilQuiet()
        server.clock.advance(by: .seconds(4))
        let isOver = Locked(false)
        Task {
            _ = await send.result
            isOver.withLock { $0 = true }
        }
        try await waitUntil { isOver.withLock { $0 } }
        let error = await #expect(throws: WaybillError.self) { try await send.value }
        #expect(error?.code == .timedOut)
        await transport.shutdown()
    }

    @Test("When a kept connection leads nowhere, those that were idle as long are not used either")
    func doubtful() async throws {
        let server = HTTPServer(
            Array(repeating: .open([]), count: 5) + [.open(Say.status(200))]
        )
        let transport = try server.transport()
        let provider = Provider<StreamEntry>(transport: transport)
        // Opens three connections.
        let sends = (0..<3).map { _ in
            Task { try await provider.request(Self.options(.seconds(1_000))) }
        }
        try await waitUntil { server.requests.count == 3 }
        for number in 0..<3 { server.send(Say.status(200), on: number) }
        for send in sends { _ = try await send.value }
        server.clock.advance(by: .seconds(100))
        // One of the three does not answer, one answers, one is idle.
        let lost = Task { try await provider.request(Self.options(.seconds(10))) }
        try await waitUntil { server.requests.count == 4 }
        let first = server.unanswered().last
        let heard = Task { try await provider.request(Self.options(.seconds(1_000))) }
        try await waitUntil { server.requests.count == 5 }
        server.clock.advance(by: .seconds(1))
        let second = try #require(server.unanswered().last)
        #expect(first != second)
        server.send(Say.status(200), on: second)
        _ = try await heard.value
        server.clock.advance(by: .seconds(9))
        let error = await #expect(throws: WaybillError.self) { try await lost.value }
        #expect(error?.code == .timedOut)
        // The first one and the idle one are closed. The next request uses the one that answered.
        try await waitUntil { server.ends == 2 }
        try await provider.request(.post(.text("next")))
        #expect(server.endpoints.count == 3)
        await transport.shutdown()
    }
}
