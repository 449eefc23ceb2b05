import Foundation
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireCore
import WireTestSupport

/// Connects to a broker in memory, and notes the hosts and the bytes of the client.
private final class NotedDialer: Dialer {
    private let broker: LoopbackBroker
    private let service: LoopbackBroker.Service
    private let refusing: [String]
    private let dials = Locked<[(endpoint: String, stream: TappedStream?)]>([])

    init(_ broker: LoopbackBroker, _ way: Way, refusing: [String]) {
        self.broker = broker
        self.refusing = refusing
        service = way.service
    }

    /// The hosts and ports, in the order of the dials.
    var endpoints: [String] { dials.withLock { $0.map(\.endpoint) } }

    /// The bytes that were written to each connection, as text.
    var written: [String] {
        dials.withLock { $0 }.compactMap(\.stream).map {
            String(decoding: $0.written, as: UTF8.self)
        }
    }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        guard !refusing.contains(endpoint.host) else {
            dials.withLock { $0.append((endpoint.description, nil)) }
            throw .refused
        }
        let pair = ByteStreamPair()
        let stream = TappedStream(pair.first)
        dials.withLock { $0.append((endpoint.description, stream)) }
        broker.serve(pair.second, as: service)
        return stream
    }
}

/// Writes down what a transport says of its frames.
private struct FrameLogger: WireLogger {
    let lines: LineLog
    var bodies: WireLogBodies { .shownAlthoughTheyMayHoldSecrets }
    func log(_ record: WireRecord) { lines.append("\(record)") }
}

@Suite(
    "MQTT and STOMP: the URL of one connection",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct ConnectionURLTests {
    /// What the configurations of both transports have in common.
    private struct Plan {
        var url: String?
        var userName: String? = "ada"
        var password: String? = "own-password"
        var hosts: [String] = []
        var credentials: CredentialSource?
        var logger: FrameLogger?
    }

    /// A client of a broker in memory.
    private struct Client {
        let transport: any Transport
        let provider: Provider<CommandEntry>
        let dialer: NotedDialer

        init(
            _ way: Way,
            refusing: [String] = [],
            _ change: (inout Plan) -> Void = { _ in }
        ) throws {
            var plan = Plan()
            change(&plan)
            let clock = ManualClock()
            let broker = LoopbackBroker(clock: clock)
            dialer = NotedDialer(broker, way, refusing: refusing)
            let environment = LinkEnvironment(
                dialer: dialer,
                clock: clock.linkTimers,
                random: { 0 }
            )
            let url = try ConnectionURLTests.url(plan.url ?? way.url("home", "own"))
            if way.isMQTT {
                var configuration = MQTTConfiguration(version: way == .mqtt311 ? .v3_1_1 : .v5)
                configuration.clientIdentifier = "client-1"
                configuration.userName = plan.userName
                configuration.password = plan.password
                configuration.credentials = plan.credentials
                configuration.failover.hosts = plan.hosts
                configuration.webSocket.headers = ["X-Own": "own-header"]
                configuration.reconnection.initialDelay = .zero
                configuration.wireLogger = plan.logger
                transport = try MQTTTransport(
                    url: url,
                    configuration: configuration,
                    environment: environment
                )
            } else {
                var configuration = STOMPConfiguration()
                configuration.userName = plan.userName
                configuration.password = plan.password
                configuration.credentials = plan.credentials
                configuration.failover.hosts = plan.hosts
                configuration.webSocket.headers = ["X-Own": "own-header"]
                configuration.reconnection.initialDelay = .zero
                configuration.wireLogger = plan.logger
                transport = try STOMPTransport(
                    url: url,
                    configuration: configuration,
                    environment: environment
                )
            }
            provider = Provider(transport: transport)
        }

        func connect(_ options: ConnectOption...) async throws {
            try await provider.request(.command(.connect(options: options)))
        }
    }

    private static func url(_ text: String) throws -> URL { try #require(URL(string: text)) }

    /// What CONNECT of either protocol, or the upgrade request before it, has of the configuration's secrets.
    private static func secrets(in text: String) -> [String] {
        ["own-password", "own-header"].filter { text.contains($0) }
    }

    @Test(
        "The option names host, port, path and query, before all other places",
        arguments: Way.shared
    )
    func option(way: Way) async throws {
        let offered = try Self.url(way.url("offered", "o"))
        let client = try Client(way) {
            $0.hosts = ["spare"]
            $0.credentials = CredentialSource { _ in Credentials(url: offered) }
        }
        let url = try Self.url(way.url("node7:77", "tenant/a?sig=s3"))
        try await client.connect(.url(url))
        #expect(client.dialer.endpoints == ["node7:77"])
        let written = try #require(client.dialer.written.first)
        if way.isOverWebSocket {
            #expect(written.hasPrefix("GET /tenant/a?sig=s3 HTTP/1.1\r\n"))
            #expect(written.contains("\r\nHost: node7:77\r\n"))
        }
        if way.isSTOMP { #expect(written.contains(way == .stomp ? "host:node7" : "GET")) }
        await client.transport.shutdown()
    }

    @Test("Credentials name the address of each attempt anew", arguments: Way.shared)
    func credentials(way: Way) async throws {
        let number = Kept(0)
        let client = try Client(way) { plan in
            plan.hosts = ["spare"]
            plan.credentials = CredentialSource { _ in
                let count = number.withLock { number in
                    number += 1
                    return number
                }
                let url = URL(string: way.url("node\(count):7", "mqtt?X-Amz-Signature=s\(count)"))
                return Credentials(userName: "u\(count)", password: "p\(count)", url: url)
            }
        }
        try await client.connect()
        try await client.provider.disconnect()
        try await client.connect()
        #expect(client.dialer.endpoints == ["node1:7", "node2:7"])
        let written = client.dialer.written
        guard written.count == 2 else { return }
        for (count, text) in zip(1..., written) {
            if way.isOverWebSocket {
                #expect(text.hasPrefix("GET /mqtt?X-Amz-Signature=s\(count) HTTP/1.1\r\n"))
            } else {
                // Through a WebSocket CONNECT is masked.
                #expect(text.contains("p\(count)"))
                #expect(text.contains("u\(count)"))
            }
            #expect(Self.secrets(in: text) == [])
        }
        await client.transport.shutdown()
    }

    @Test(
        "A connection that is lost is made again at the address that is named then",
        arguments: Way.shared
    )
    func reconnection(way: Way) async throws {
        let number = Kept(0)
        let client = try Client(way) { plan in
            plan.credentials = CredentialSource { occasion in
                let count = number.withLock { number in
                    number += 1
                    return number
                }
                let host = occasion.isReconnection ? "again\(count)" : "first\(count)"
                return Credentials(url: URL(string: way.url("\(host):7", "x")))
            }
        }
        try await client.connect()
        // A pause keeps the session, and the next connection is made without the app's connect.
        await client.transport.pause()
        client.transport.resume()
        try await waitUntil { client.dialer.endpoints.count == 2 && client.provider.isConnected }
        #expect(client.dialer.endpoints.first == "first1:7")
        #expect(client.dialer.endpoints.last?.hasSuffix("2:7") == true)
        if way == .mqtt311 || way == .mqtt5 {
            // The session is the client's, wherever it connects.
            #expect(client.dialer.written.allSatisfy { $0.contains("client-1") })
        }
        await client.transport.shutdown()
    }

    @Test("Another host is not tried in the place of one that is named", arguments: Way.shared)
    func noFailover(way: Way) async throws {
        let client = try Client(way, refusing: ["down"]) { $0.hosts = ["spare"] }
        let url = try Self.url(way.url("down:7", "x?sig=s3cret"))
        let error = await expectError(.connectionRefused) { try await client.connect(.url(url)) }
        #expect(client.dialer.endpoints == ["down:7"])
        #expect(error?.underlying is FailoverFailure == false)
        // The next connect without an option goes where the transport goes.
        try await client.connect()
        #expect(client.dialer.endpoints.count == 2)
        #expect(client.dialer.endpoints.last?.hasPrefix("home:") == true)
        await client.transport.shutdown()
    }

    @Test("Secrets of the configuration go to the service alone: by its URL or a host of failover")
    func origins() async throws {
        for way in Way.shared {
            for (host, isOfService) in [
                ("home", true), ("HOME", true), ("spare", true), ("home:7", false),
                ("other", false),
            ] {
                let client = try Client(way) { $0.hosts = ["spare"] }
                try await client.connect(.url(Self.url(way.url(host, "tenant"))))
                let written = try #require(client.dialer.written.first)
                let sought = way.isOverWebSocket ? "own-header" : "own-password"
                #expect(written.contains(sought) == isOfService, "\(way) \(host)")
                if !way.isOverWebSocket {
                    #expect(written.contains("ada") == isOfService, "\(way) \(host)")
                }
                await client.transport.shutdown()
            }
        }
    }

    @Test(
        "Credentials go where they were given to go, and not to an origin that only the option names"
    )
    func givenElsewhere() async throws {
        for way in [Way.mqtt5, .stomp] {
            for (offered, isSent) in [
                (nil, false), ("b:7", true), ("c:7", false),
            ] as [(String?, Bool)] {
                let client = try Client(way) { plan in
                    plan.userName = nil
                    plan.password = nil
                    plan.credentials = CredentialSource { _ in
                        let url = offered.flatMap { URL(string: way.url($0, "")) }
                        return Credentials(userName: "ada", password: "given", url: url)
                    }
                }
                try await client.connect(.url(Self.url(way.url("b:7", ""))))
                #expect(client.dialer.endpoints == ["b:7"])
                let written = try #require(client.dialer.written.first)
                #expect(written.contains("given") == isSent, "\(way) \(offered ?? "-")")
                await client.transport.shutdown()
            }
        }
    }

    @Test("User name and password in the URL count as those of its place")
    func userInfo() async throws {
        for way in [Way.mqtt5, .stomp] {
            let client = try Client(way) { plan in
                plan.credentials = CredentialSource { _ in
                    Credentials(userName: "source-name", password: "source-word")
                }
            }
            let url = way.url("url-name:url-word@home", "")
            try await client.connect(.url(Self.url(url)))
            let written = try #require(client.dialer.written.first)
            #expect(written.contains("url-name") && written.contains("url-word"))
            #expect(!written.contains("source-"))
            await client.transport.shutdown()
        }
    }

    @Test(
        "A token of an interceptor stays with the service, unless the interceptor names the address"
    )
    func interceptors() async throws {
        struct Placing: Interceptor {
            let url: URL?
            func adapt(_ request: inout Request, context: InterceptorContext) async throws {
                guard request.command.kind == .connect else { return }
                request.command[.userName] = "ada"
                request.command[.password] = "token"
                if let url { request.command[.url] = url }
            }
        }
        for way in [Way.mqtt5, .stomp] {
            let other = try Self.url(way.url("other:7", ""))
            let home = try Self.url(way.url("home", ""))
            for (option, placed, isSent) in [
                (other, nil, false), (home, nil, true), (nil, other, true), (home, other, true),
            ] as [(URL?, URL?, Bool)] {
                let client = try Client(way) { plan in
                    plan.userName = nil
                    plan.password = nil
                }
                let provider = client.provider.intercepted(Placing(url: placed))
                let options = option.map { [ConnectOption.url($0)] } ?? []
                try await provider.request(.command(.connect(options: options)))
                let written = try #require(client.dialer.written.first)
                #expect(written.contains("token") == isSent, "\(way) \(isSent)")
                await client.transport.shutdown()
            }
        }
    }

    @Test("A URL that cannot be is refused before any input or output", arguments: Way.shared)
    func refused(way: Way) async throws {
        let scheme = way.isMQTT ? "mqtt" : "stomp"
        let rows: [(home: String, url: String, WaybillError.Code)] = [
            ("\(scheme)s://home", "\(scheme)://home", .invalidEntry),
            ("\(scheme)s://home", "ws://home/x?sig=s3cret", .invalidEntry),
            ("wss://home", "ws://home", .invalidEntry),
            ("wss://home", "\(scheme)://u:s3cret@home", .invalidEntry),
            ("ws://home", "ftp://home", .unsupported), ("ws://home", "//home", .invalidEntry),
            ("ws://home", "ws:///x", .invalidEntry), ("ws://home", "ws://home:0", .invalidEntry),
            ("ws://home", "ws://home/x#s3cret", .invalidEntry),
            ("ws://home", "\(scheme)://home/s3cret", .invalidEntry),
        ]
        for row in rows {
            let url = try Self.url(row.url)
            let client = try Client(way) { $0.url = row.home }
            let error = await expectError(row.2) { try await client.connect(.url(url)) }
            #expect(error?.command == "connect", "\(row.url)")
            #expect(error?.option == (row.2 == .unsupported ? .url : nil), "\(row.url)")
            #expect(error.map { "\($0)".contains("s3cret") } == false)
            #expect(client.dialer.endpoints == [])
            await client.transport.shutdown()

            let asking = try Client(way) { plan in
                plan.url = row.home
                plan.credentials = CredentialSource { _ in Credentials(url: url) }
            }
            let refusal = await expectError(row.2) { try await asking.connect() }
            #expect(refusal.map { "\($0)".contains("s3cret") } == false)
            #expect(asking.dialer.endpoints == [])
            await asking.transport.shutdown()
        }
    }

    @Test("The URL is an option of `connect` alone, and cannot be left out", arguments: Way.shared)
    func otherCommands(way: Way) async throws {
        let client = try Client(way)
        let url = try Self.url(way.url("other", "x"))
        let provider = client.provider.whenUnsupported(.ignore([.url]))
        for entry in [
            CommandEntry.command(.send(.url(url)), topic: "a"),
            .command(.subscribe(.url(url)), topic: "a"),
        ] {
            let error = await expectError(.unsupported) {
                if entry.command.kind == .send {
                    try await provider.request(entry)
                } else {
                    _ = try await provider.messages(entry, as: Message.self)
                }
            }
            #expect(error?.option == .url)
        }
        await client.transport.shutdown()
    }

    @Test("Neither a query nor user information is shown", arguments: Way.shared)
    func neverShown(way: Way) async throws {
        let lines = LineLog()
        let client = try Client(way, refusing: ["down"]) {
            $0.logger = FrameLogger(lines: lines)
        }
        observe(client.provider.events) { lines.append("\($0)") }
        let secret = "u:s3cret@"
        for host in ["down:7", "up:7"] {
            let url = try Self.url(way.url(secret + host, "x?sig=s3cret"))
            let command = EntryCommand.connect(.url(url))
            lines.append("\(command) \(ConnectOption.url(url))")
            var dumped = ""
            dump(command, to: &dumped)
            lines.append(dumped)
            do {
                try await client.provider.request(.command(command))
            } catch {
                lines.append("\(error)")
            }
        }
        lines.append("\(Credentials(url: try Self.url(way.url("\(secret)up", "x?sig=s3cret"))))")
        #expect(client.dialer.endpoints == ["down:7", "up:7"])
        await client.transport.shutdown()
        #expect(lines.count("up:7") > 0)
        #expect(lines.count("s3cret") == 0)
    }

    @Test("A mock keeps the URL in the request, and refuses what its protocol refuses")
    func mock() async throws {
        let url = try Self.url("wss://node7/tenant?sig=s3")
        for wireProtocol in [MockTransport.WireProtocol.mqtt5, .stomp] {
            let mock = MockTransport(like: wireProtocol).expect(.connect)
            let provider = Provider<CommandEntry>(transport: mock)
            try await provider.request(.command(.connect(.url(url))))
            #expect(mock.requests.last?.command[.url] == url)
            let foreign = try Self.url("https://node7")
            let error = await expectError(.unsupported) {
                try await provider.request(.command(.connect(.url(foreign))))
            }
            #expect(error?.option == .url)
            await expectError(.invalidEntry) {
                try await provider.request(.command(.connect(.url(Self.url("wss://h/#f")))))
            }
        }
    }
}

extension Way {
    /// A URL of this way.
    fileprivate func url(_ host: String, _ path: String) -> String {
        switch self {
        case .mqtt311, .mqtt5: "mqtt://\(host)"
        case .stomp: "stomp://\(host)"
        case .mqttOverWebSocket, .stompOverWebSocket: "ws://\(host)/\(path)"
        case .events: "http://\(host)/\(path)"
        }
    }
}
