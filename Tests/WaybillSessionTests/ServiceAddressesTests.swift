import Testing
import Waybill
import WaybillLink
import WaybillSession
import WireCore

@Suite("The address that one connection states") struct ServiceAddressesTests {
    private static let addresses = ServiceAddresses(
        for: "MQTT",
        schemes: [
            .tcp("mqtt", port: 1_883), .tcp("mqtts", port: 8_883, isSecure: true),
            .http("ws", port: 80), .http("wss", port: 443, isSecure: true),
        ]
    )

    private static func address(
        _ text: String,
        home: String = "ws://a"
    ) throws -> ServiceAddress {
        let home = try addresses.home(ServiceAddress.url(home))
        return try addresses.knowing([home, home.moved(to: "spare")])
            .address(of: ServiceAddress.url(text))
    }

    @Test("Whose secrets go there: by scheme, host and port")
    func origins() throws {
        for (text, isForeign) in [
            ("ws://a/x?y", false), ("ws://u:p@A:80", false), ("ws://spare", false),
            ("wss://a", true), ("mqtt://a", true), ("ws://a:81", true), ("ws://b", true),
        ] {
            #expect(try Self.address(text).isForeign == isForeign, "\(text)")
        }
    }

    @Test("Credentials without a URL go to the service, those with one to its origin")
    func settling() throws {
        let (home, other) = (try Self.address("ws://a/x"), try Self.address("ws://b/x"))
        let same = try Self.address("ws://b/y")
        for (option, credentials, address, go) in [
            (nil, nil, nil, true), (nil, other, other, true), (home, nil, home, true),
            (other, nil, other, false), (other, same, other, true), (other, home, other, false),
            (home, other, home, false),
        ] as [(ServiceAddress?, ServiceAddress?, ServiceAddress?, Bool)] {
            let found = ServiceAddresses.settle(option: option, credentials: credentials)
            #expect(found.address == address && found.credentialsGo == go)
        }
    }

    /// The hosts and paths of one connect at `ws://n:7/p?sig=s`, where some servers refer to others.
    private static func visit(
        _ failover: Failover,
        _ text: String = "ws://n:7/p?sig=s",
        isReconnection: Bool = false,
        referring: [String: String] = [:]
    ) async throws -> [String] {
        let stated = try address(text)
        let tried = Locked<[String]>([])
        _ = try? await failover.first(isReconnection: isReconnection, at: stated) { route in
            let host = route.address.endpoint.host
            tried.withLock { $0.append("\(route.address.endpoint)\(route.address.path)") }
            #expect(route.address.isForeign)
            if let other = referring[host] {
                let servers = [ServerRedirect.Server(name: other, port: nil)]
                _ = failover.note(.init(isPermanent: false, servers: servers), by: route)
                throw WaybillError(.connectionRefused, "elsewhere")
            }
        }
        return tried.withLock { $0 }
    }

    @Test("A server that refers to others: the path and the port stay, the query does not go")
    func referrals() async throws {
        let failover = Failover.fixture(FailoverOptions(hosts: ["b"]), maximumHops: 1)
        let first = try await Self.visit(failover, referring: ["n": "x"])
        #expect(first == ["n:7/p?sig=s", "x:7/p"])
        // The server that stands in comes first where the same address is stated again after a loss,
        let again = try await Self.visit(failover, isReconnection: true)
        #expect(again == ["x:7/p"])
        // and counts for nothing where another one is stated,
        let other = try await Self.visit(failover, "ws://m/p", isReconnection: true)
        #expect(other == ["m:80/p"])
        // nor where the service's own hosts are tried.
        let own = Locked<[String]>([])
        try await failover.first(isReconnection: true) { route in
            own.withLock { $0.append(route.address.endpoint.host) }
        }
        #expect(own.withLock { $0 } == ["a"])
    }

    @Test("No other host is tried, and the error is that of the one host")
    func alone() async throws {
        let failover = Failover.fixture(FailoverOptions(hosts: ["b"]))
        let stated = try Self.address("ws://n")
        let error = await #expect(throws: WaybillError.self) {
            try await failover.first(at: stated) { _ in
                throw WaybillError(.timedOut, "silence")
            }
        }
        #expect(error?.code == .timedOut && error?.underlying == nil)
    }
}
