import HTTPWire
import Testing
import Waybill
import WaybillLink
import WaybillTesting
import WaybillWebSocket
import WebSocketWire
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Several hosts in memory. Some of them cannot be reached.
@Suite("WebSocket: hosts and proxies", .timeLimit(.minutes(30))) struct FailoverTests {
    /// Chooses the peer by its host.
    private final class Hosts: Dialer {
        private let peers: [String: Peer]
        private let tried = Locked<[String]>([])

        init(_ peers: [String: Peer]) { self.peers = peers }

        var hosts: [String] { tried.withLock { $0 } }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            tried.withLock { $0.append(endpoint.description) }
            guard let peer = peers[endpoint.host] else { throw .refused }
            return try await peer.dial(endpoint, timeout: timeout, timers: timers)
        }
    }

    private func connect(
        _ hosts: Hosts,
        _ clock: Peer,
        _ change: (inout WebSocketClient.Configuration) -> Void = { _ in }
    ) async throws -> WebSocketClient {
        var configuration = WebSocketClient.Configuration()
        configuration.failover.hosts = ["b:81", "c"]
        change(&configuration)
        let timers = clock.clock.linkTimers
        let url = try #require(URL(string: "ws://a/chat"))
        return try await WebSocketClient.connect(
            to: url,
            configuration: configuration,
            environment: LinkEnvironment(
                dialer: hosts,
                clock: timers,
                random: { 0 }
            )
        )
    }

    private static func refusing(_ status: Int) -> Peer {
        Peer { driver, event in
            guard case .requested = event else { return }
            driver.withCore(.immediate) { core, _ in
                core.refuse(HTTPResponseHead(status: status, reason: ""), body: [])
            }
        }
    }

    private func host(_ peer: Peer) -> String? {
        guard case .requested(let head)? = peer.events.first else { return nil }
        return head.headers.first("host")
    }

    @Test("Host after host, until one takes the upgrade; the Host field follows")
    func nextHost() async throws {
        let busy = Self.refusing(503)
        let open = Peer()
        let hosts = Hosts(["b": busy, "c": open])
        let socket = try await connect(hosts, open)
        #expect(hosts.hosts == ["a:80", "b:81", "c:80"])
        #expect(host(busy) == "b:81")
        #expect(host(open) == "c")
        try await socket.send("x")
        try await socket.close()
    }

    @Test("A server that wants other credentials is the last that is asked")
    func credentials() async throws {
        let strict = Self.refusing(401)
        let hosts = Hosts(["b": strict, "c": Peer()])
        let error = await #expect(throws: WaybillError.self) {
            _ = try await connect(hosts, strict)
        }
        #expect(error?.code == .unauthorized)
        #expect(hosts.hosts == ["a:80", "b:81"])
    }

    @Test("Through a proxy that is not there, no host is reached, and the error says why")
    func deadProxy() async throws {
        let hosts = Hosts(["a": Peer()])
        let error = await #expect(throws: WaybillError.self) {
            _ = try await connect(hosts, Peer()) { configuration in
                configuration.proxy = ProxyOptions(host: "proxy", port: 1)
            }
        }
        #expect(error?.code == .connectionRefused)
        #expect(hosts.hosts == ["proxy:1", "proxy:1", "proxy:1"])
        #expect(error?.message.contains("a:80: the proxy: ") == true)
    }
}
