import Testing
import TransportTestSupport
import Waybill
import WaybillSTOMP
import WaybillTesting

/// Several hosts, and a proxy before them, on a clock that stands still.
@Suite("STOMP transport: hosts and proxies", .inSimulation, .timeLimit(.minutes(30)))
struct FailoverTests {
    private static func connect(_ host: String) -> String {
        "CONNECT\naccept-version:1.2\nhost:\(host)\nheart-beat:10000,10000\n\n\0"
    }
    /// The steps of a server during one connection.
    private static func course(_ host: String) -> [ScriptedByteStream.Step] {
        [
            .expect(connect(host)), .reply("CONNECTED\nversion:1.2\n\n\0"),
            .expect("DISCONNECT\nreceipt:1\n\n\0"), .reply("RECEIPT\nreceipt-id:1\n\n\0"),
        ]
    }

    private func connect(
        _ first: ScriptedByteStream,
        _ second: ScriptedByteStream,
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) async throws -> STOMPTransport {
        let (transport, provider) = try scripted([first, second]) {
            $0.reconnection = .never
            $0.failover.hosts = ["other"]
            change(&$0)
        }
        try await provider.request(.connect)
        return transport
    }

    @Test("The virtual host is that which is connected to (STOMP 1.2, CONNECT)")
    func host() async throws {
        let first = ScriptedByteStream(.expect(Self.connect("script")), .reset)
        let second = ScriptedByteStream(steps: Self.course("other"))
        let transport = try await connect(first, second)
        #expect(first.failures == [])
        await transport.shutdown()
        #expect(second.isComplete)
    }

    @Test("A virtual host that is configured is the same at each")
    func configuredHost() async throws {
        let first = ScriptedByteStream(.expect(Self.connect("/")), .reset)
        let second = ScriptedByteStream(steps: Self.course("/"))
        let transport = try await connect(first, second) { $0.host = "/" }
        #expect(first.failures == [])
        await transport.shutdown()
        #expect(second.isComplete)
    }

    @Test("A server that knows the user's password better is the last that is asked")
    func credentials() async throws {
        let strict = ScriptedByteStream(
            .expect(Self.connect("script")),
            .reply("ERROR\nmessage:Authentication failed\n\n\0"),
            .finish
        )
        let other = ScriptedByteStream(.skip(1))
        await expectError(.unauthorized) { try await connect(strict, other) }
        #expect(!other.hasReached(2))
    }

    @Test("Through a proxy: first its CONNECT, then STOMP's")
    func proxied() async throws {
        let script = ScriptedByteStream(
            steps: [
                .expect("CONNECT script:61613 HTTP/1.1\r\nHost: script:61613\r\n\r\n"),
                .reply("HTTP/1.1 200 OK\r\n\r\n"),
            ] + Self.course("script")
        )
        let transport = try await connect(script, ScriptedByteStream()) {
            $0.proxy = ProxyOptions(host: "proxy", port: 1)
        }
        await transport.shutdown()
        #expect(script.isComplete)
    }
}
