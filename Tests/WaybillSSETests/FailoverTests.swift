import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSSE
import WaybillTesting
import WireTestSupport

/// Several hosts, and a proxy before them, on a clock that stands still.
@Suite("Event stream transport: hosts and proxies", .inSimulation, .timeLimit(.minutes(30)))
struct FailoverTests {
    private func transport(
        _ server: HTTPServer,
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) throws -> (SSETransport, Provider<StreamEntry>) {
        let transport = try server.transport { configuration in
            configuration.failover.hosts = ["b", "c:81"]
            change(&configuration)
        }
        return (transport, Provider(transport: transport))
    }

    private func hosts(_ server: HTTPServer) -> [String?] {
        server.requests.map { $0.head.headers.first("host") }
    }

    @Test("A stream is asked for host after host; the Host field follows (RFC 9110, 7.2)")
    func stream() async throws {
        let server = HTTPServer([
            .refuse, .open(Say.status(503)), .open(Say.stream("data: x\n\n")),
        ])
        let (transport, provider) = try transport(server)
        let messages = try await provider.messages(.listen())
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "x")
        #expect(server.endpoints.map(\.description) == ["example.com:80", "b:80", "c:81"])
        #expect(hosts(server) == ["b", "c:81"])
        #expect(server.requests.allSatisfy { $0.head.target == "/api/events" })
        await transport.shutdown()
    }

    @Test("A stream that was open and is lost is asked for from the first host on")
    func lost() async throws {
        let server = HTTPServer([
            .refuse, .open(Say.stream("id: 1\ndata: x\n\n")),
            .open(Say.stream("data: y\n\n")),
        ])
        let (transport, provider) = try transport(server) { $0.reconnection.initialDelay = .zero }
        var iterator = try await provider.messages(.listen()).makeAsyncIterator()
        #expect(try await iterator.next()?.text == "x")
        server.endOfStream()
        // The pause before the next attempt is over.
        try await waitUntil(moving: { server.clock.advance(by: .milliseconds(100)) }) {
            server.endpoints.count >= 3
        }
        #expect(try await iterator.next()?.text == "y")
        #expect(server.endpoints.map(\.host) == ["example.com", "b", "example.com"])
        #expect(server.requests.last?.head.headers.first("last-event-id") == "1")
        await transport.shutdown()
    }

    @Test("A no is final: credentials, and what is no event stream", arguments: [401, 404, 204])
    func final(status: Int) async throws {
        let server = HTTPServer([.open(Say.status(status)), .open(Say.stream(""))])
        let (transport, provider) = try transport(server)
        await #expect(throws: WaybillError.self) { try await provider.messages(.listen()) }
        #expect(server.endpoints.count == 1)
        await transport.shutdown()
    }

    @Test("When no host has the stream the error says how each failed")
    func allFail() async throws {
        let server = HTTPServer([.refuse, .open(Say.status(503)), .refuse])
        let (transport, provider) = try transport(server)
        let error = await #expect(throws: WaybillError.self) {
            try await provider.messages(.listen())
        }
        #expect(error?.code == .connectionRefused)
        let failure = try #require(error?.underlying as? FailoverFailure)
        #expect(failure.attempts.map(\.host) == ["example.com:80", "b:80", "c:81"])
        #expect(failure.attempts[1].error.peerReason?.hasPrefix("503") == true)
        await transport.shutdown()
    }

    @Test("A send goes to the first host that can be reached, and the next one over what is there")
    func sends() async throws {
        let server = HTTPServer([.refuse, .open(Say.status(200)), .open(Say.status(200))])
        let (transport, provider) = try transport(server)
        for _ in 0..<2 { try await provider.request(.post(.text("x"))) }
        #expect(server.endpoints.map(\.host) == ["example.com", "b"])
        #expect(hosts(server) == ["b", "b"])
        await transport.shutdown()
    }

    @Test("Shutting down breaks off a send that still connects, and no other host is tried")
    func shutDownWhileConnecting() async throws {
        let server = HTTPServer([.stall])
        let (transport, provider) = try transport(server)
        let send = Task { try await provider.request(.post(.text("x"))) }
        try await waitUntil { !server.endpoints.isEmpty }
        await transport.shutdown()
        let error = await #expect(throws: WaybillError.self) { try await send.value }
        #expect(error?.code == .shutDown)
        #expect(server.endpoints.count == 1)
    }

    @Test("A send that is cancelled while it connects is over, and no other host is tried")
    func cancelledWhileConnecting() async throws {
        let server = HTTPServer([.stall])
        let (transport, provider) = try transport(server)
        let send = Task { try await provider.request(.post(.text("x"))) }
        try await waitUntil { !server.endpoints.isEmpty }
        send.cancel()
        await #expect(throws: CancellationError.self) { try await send.value }
        #expect(server.endpoints.count == 1)
        await transport.shutdown()
    }

    @Test("A redirect within a host keeps the zone of its address, which the host does not know")
    func zone() async throws {
        let server = HTTPServer([
            .close(Say.status(307, "Location: /there\r\nConnection: close\r\n")),
            .open(Say.status(200)),
        ])
        let transport = try server.transport("http://[fe80::1%25lo]/api")
        let provider = Provider<StreamEntry>(transport: transport)
        try await provider.request(.post(.text("x")))
        #expect(server.endpoints.map(\.host) == ["fe80::1%lo", "fe80::1%lo"])
        #expect(hosts(server) == ["[fe80::1]", "[fe80::1]"])
        await transport.shutdown()
    }

    @Test("What a server has answered to a send is the answer")
    func answered() async throws {
        let server = HTTPServer([.open(Say.status(503)), .open(Say.status(200))])
        let (transport, provider) = try transport(server)
        await #expect(throws: WaybillError.self) { try await provider.request(.post(.text("x"))) }
        #expect(server.endpoints.count == 1)
        await transport.shutdown()
    }

    @Test("A redirect counts from the host that gave it, and leads to one host only")
    func redirect() async throws {
        let server = HTTPServer([
            .refuse, .open(Say.status(307, "Location: /there\r\n")), .open(Say.status(200)),
        ])
        let (transport, provider) = try transport(server)
        try await provider.request(.post(.text("x")))
        #expect(server.endpoints.map(\.host) == ["example.com", "b"])
        #expect(server.requests.map(\.head.target) == ["/api/messages", "/there"])
        #expect(hosts(server) == ["b", "b"])
        await transport.shutdown()

        let elsewhere = HTTPServer([
            .open(Say.status(307, "Location: http://d/there\r\n")), .refuse,
        ])
        let (other, provider2) = try self.transport(elsewhere)
        await #expect(throws: WaybillError.self) { try await provider2.messages(.listen()) }
        // The failed redirect counts as the failure of one host. The next host is tried and refuses.
        #expect(elsewhere.endpoints.map(\.host).prefix(3) == ["example.com", "d", "b"])
        await other.shutdown()
    }

    @Test("Through a proxy also a plain stream goes by CONNECT")
    func proxied() async throws {
        let server = HTTPServer([
            .open(Array("HTTP/1.1 200 OK\r\n\r\n".utf8)), .open(Say.stream("data: x\n\n")),
        ])
        let (transport, provider) = try transport(server) {
            $0.proxy = ProxyOptions(host: "proxy", port: 3_128, userName: "a", password: "b")
        }
        var iterator = try await provider.messages(.listen()).makeAsyncIterator()
        #expect(try await iterator.next()?.text == "x")
        #expect(server.endpoints.map(\.description) == ["proxy:3128"])
        let heads = server.requests.map(\.head)
        #expect(heads.map(\.method) == ["CONNECT", "GET"])
        #expect(heads[0].target == "example.com:80")
        #expect(heads.map { $0.headers.first("proxy-authorization") } == ["Basic YTpi", nil])
        await transport.shutdown()
    }
}
