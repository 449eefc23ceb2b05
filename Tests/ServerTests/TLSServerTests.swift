import Testing
import Waybill
import WaybillMQTT
import WireTestSupport

@Suite(
    "Servers behind TLS",
    .enabled(
        if: TestServers.areSecure,
        "servers with TLS are not running: Tests/Servers/with --install mosquitto rabbitmq nginx -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct TLSServerTests {
    /// Expects a TLS failure and returns its kind.
    private func failure(
        _ body: () async throws -> NegotiatedTLS?,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async -> TLSFailure.Reason? {
        do {
            let agreed = try await body()
            Issue.record(
                "no error but \(String(describing: agreed))",
                sourceLocation: sourceLocation
            )
        } catch let error as WaybillError {
            #expect(error.code == .tls, "\(error)", sourceLocation: sourceLocation)
            return (error.underlying as? TLSFailure)?.reason
        } catch {
            Issue.record(error, sourceLocation: sourceLocation)
        }
        return nil
    }

    @Test(
        "The right chain is accepted, and what was agreed on is told",
        arguments: TLSRoute.allCases
    )
    func right(route: TLSRoute) async throws {
        let agreed = try #require(try await route.visit())
        #expect(agreed.version == "TLSv1.3")
        // Only clients of HTTP offer a protocol (ALPN). RabbitMQ chooses none.
        let choosesProtocol = [.https, .wss, .mqttOverWSS].contains(route)
        #expect(agreed.applicationProtocol == (choosesProtocol ? "http/1.1" : nil))
        let other = [UInt8](repeating: 1, count: 32)
        let pin = try #require(TestServers.publicKeyHash)
        #expect(try await route.visit { $0.pinnedPublicKeys = [other, pin] } != nil)
        let reason = await failure {
            try await route.visit(route.refusedURL) { $0.pinnedPublicKeys = [other] }
        }
        #expect(reason == .pinMismatch)
    }

    @Test(
        "Each bad certificate is refused with an error of its own",
        arguments: TLSRoute.badlyServed,
        TLSRoute.badCertificates
    )
    func bad(route: TLSRoute, name: String) async throws {
        let expected: TLSFailure.Reason =
            switch name {
            case "wronghost": .hostMismatch
            case "untrusted": .unknownAuthority
            case "expired": .expired
            case "notyet": .notYetValid
            case "selfsigned": .selfSigned
            case "clientonly": .wrongPurpose
            // Erlang shows no certificate whose signature algorithm the client has not offered.
            default: route.showsAnything ? .weakCertificate : .noCommonProtocol
            }
        let (url, serverName) = route.bad(name)
        let reason = await failure { try await route.visit(url) { $0.serverName = serverName } }
        #expect(reason == expected)
        guard name != "sha1" || route.showsAnything else { return }
        // The opt-out accepts the certificate.
        try await route.visit(url) {
            $0.serverName = serverName
            $0.dangerouslyAcceptsAnyCertificate = true
        }
    }

    @Test("A host that the certificate does not name", arguments: TLSRoute.allCases)
    func otherHost(route: TLSRoute) async throws {
        let url = route.refusedURL
        let reason = await failure {
            try await route.visit(url) { $0.serverName = "elsewhere.test" }
        }
        #expect(reason == .hostMismatch)
        // The authority is not one of the system's.
        #expect(
            await failure { try await route.visit(url) { $0.authorities = [] } }
                == .unknownAuthority
        )
    }

    @Test("A client's certificate, where one is wanted", arguments: TLSRoute.allCases)
    func mutual(route: TLSRoute) async throws {
        let (url, serverName) = route.mutual
        func visit(_ identity: TLSOptions.Identity?) async throws -> NegotiatedTLS? {
            try await route.visit(url) {
                $0.serverName = serverName
                $0.identity = identity
            }
        }
        func pair(_ name: String, key: String? = nil, _ password: String? = nil)
            -> TLSOptions.Identity
        {
            .certificate(
                TestServers.certificate("\(name).pem"),
                key: TestServers.certificate("\(key ?? name).key"),
                password: password
            )
        }
        #expect(try await visit(pair("client")) != nil)
        #expect(try await visit(pair("client-chain", key: "client-locked", "secret")) != nil)
        let file = TestServers.certificate("client.p12")
        #expect(try await visit(.pkcs12(file, password: "secret")) != nil)
        #expect(
            await failure { try await visit(.pkcs12(file, password: "wrong")) } == .invalidOptions
        )
        guard !route.isHTTP else {
            // nginx reports it with an HTTP response.
            for identity in [nil, pair("badclient")] {
                let error = await #expect(throws: WaybillError.self) { try await visit(identity) }
                #expect((error?.underlying as? HTTPRefusal)?.status == 400)
            }
            return
        }
        #expect(await failure { try await visit(nil) } == .certificateRequired)
        #expect(await failure { try await visit(pair("badclient")) } == .certificateRefused)
    }

    @Test("A server that speaks TLS 1.2 only")
    func oldVersion() async throws {
        let url = TestServers.url("NGINX_TLS_1_2", "http")
        let agreed = try #require(try await TLSRoute.https.visit(url))
        #expect(agreed.version == "TLSv1.2")
        #expect(agreed.applicationProtocol == "http/1.1")
        let reason = await failure {
            try await TLSRoute.https.visit(url) { $0.minimumVersion = .v1_3 }
        }
        #expect(reason == .noCommonProtocol)
    }

    @Test("TLS on a plain port", arguments: TLSRoute.allCases)
    func plainPort(route: TLSRoute) async throws {
        let reason = await failure { try await route.visit(route.urlOfPlainPort) }
        // Some servers send bytes before they close.
        #expect([.notTLS, .closed].contains(reason))
    }

    #if os(Linux)
        @Test("A server that says nothing is waited for as long as a connection may take")
        func stall() async throws {
            // The kernel completes the connections, but they are never accepted.
            let listener = try SilentListener(backlog: 16)
            for route in TLSRoute.allCases {
                let scheme = route.url.prefix { $0 != ":" }
                let error = await #expect(throws: WaybillError.self) {
                    try await route.visit(
                        "\(scheme)://127.0.0.1:\(listener.port)",
                        timeout: .milliseconds(200)
                    )
                }
                #expect(error?.code == .timedOut, "\(route)")
            }
        }
    #endif

    #if os(Linux)
        @Test("500 connections at once on one thread")
        func many() async throws {
            try await withThrowingTaskGroup(of: MQTTTransport.self) { group in
                for number in 0..<500 {
                    group.addTask {
                        let transport = try MosquittoServer.transport(.v5, at: .secure) {
                            $0.timeouts.connect = .seconds(60)
                        }
                        let entry = WireEntry.send(
                            Payload("\(number)"),
                            to: "waybill/many",
                            .atLeastOnce
                        )
                        try await Provider<WireEntry>(transport: transport).request(entry)
                        return transport
                    }
                }
                var transports: [MQTTTransport] = []
                for try await transport in group { transports.append(transport) }
                #expect(OpenResources(loop: "waybill-loop").loops == 1)
                // Each transport still works while all of them exist.
                for transport in transports {
                    let entry = WireEntry.send("once more", to: "waybill/many", .exactlyOnce)
                    try await Provider<WireEntry>(transport: transport).request(entry)
                }
                for transport in transports { await transport.shutdown() }
            }
        }
    #endif

    @Test("Plain text on a port with TLS", arguments: TLSRoute.allCases)
    func securePort(route: TLSRoute) async throws {
        let error = await #expect(throws: WaybillError.self) {
            try await route.visit(route.refusedURLWithoutTLS)
        }
        // The server's reaction: an HTTP response, a TLS alert, or the end of the connection.
        switch route {
        case .https, .wss: #expect((error?.underlying as? HTTPRefusal)?.status == 400)
        case .stomps: #expect((error?.underlying as? TLSFailure)?.reason == .required)
        case .stompOverWSS: #expect([.tls, .connectionLost].contains(error?.code))
        case .mqtts, .mqttOverWSS: #expect(error?.code == .connectionLost)
        }
    }
}
