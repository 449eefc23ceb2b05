import ChaosSupport
import Testing
import Waybill
import WaybillMQTT
import WireCore
import WireTestSupport

/// SCRAM-SHA-256 against Mosquitto with a plugin.
@Suite(
    "SCRAM at Mosquitto",
    .enabled(
        if: TestServers.port("SCRAM") != nil,
        "Mosquitto with SCRAM is not running: Tests/Servers/with --install scram -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct SCRAMServerTests {
    private func transport(
        _ password: String = "pencil",
        user: String = "user",
        at variable: String = "SCRAM",
        port: UInt16? = nil,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> MQTTTransport {
        var configuration = MQTTConfiguration()
        configuration.reconnection = .never
        configuration.authenticator = SCRAMAuthenticator(userName: user, password: password)
        change(&configuration)
        let url = port.map { "mqtt://127.0.0.1:\($0)" } ?? TestServers.url(variable, "mqtt")
        return try MQTTTransport(url: url, configuration: configuration)
    }

    private final class Log: WireLogger {
        let lines = Locked<[String]>([])

        func log(_ record: WireRecord) { lines.withLock { $0.append(record.text) } }

        func count(_ text: String) -> Int {
            lines.withLock { lines in lines.count { $0.hasPrefix(text) } }
        }
    }

    private let topic = "waybill/\(UInt64.random(in: 0 ... .max))"

    @Test("The right password connects, and messages flow")
    func connects() async throws {
        let transport = try transport()
        let provider = Provider<WireEntry>(transport: transport)
        let messages = try await provider.messages(.subscribe(topic, .atLeastOnce))
        try await provider.request(.send(.init("x"), to: topic, .exactlyOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "x")
        await transport.shutdown()
    }

    @Test(
        "A wrong password, an unknown user and no authentication are refused",
        arguments: [("user", "pencils"), ("users", "pencil"), nil]
    )
    func refused(credentials: (String, String)?) async throws {
        let transport = try transport(credentials?.1 ?? "", user: credentials?.0 ?? "") {
            if credentials == nil { $0.authenticator = nil }
        }
        let provider = Provider<WireEntry>(transport: transport)
        do {
            try await provider.request(.connect())
            Issue.record("accepted")
        } catch let error as WaybillError {
            #expect(error.code == .unauthorized)
            #expect(error.mqttReason?.code == .notAuthorized)
        }
        await transport.shutdown()
    }

    @Test("A method that the server does not have is refused with 0x8C")
    func otherMethod() async throws {
        struct Other: MQTTAuthenticator, MQTTAuthenticationExchange {
            let method = "SCRAM-SHA-1"

            func makeExchange(
                _ context: MQTTAuthenticationContext
            ) async throws -> any MQTTAuthenticationExchange { self }

            mutating func begin() async throws -> [UInt8]? { Array("n,,n=user,r=a".utf8) }
            mutating func respond(to data: [UInt8]?) async throws -> [UInt8]? { nil }
            mutating func finish(with data: [UInt8]?) async throws {}
        }
        let transport = try transport { $0.authenticator = Other() }
        let provider = Provider<WireEntry>(transport: transport)
        do {
            try await provider.request(.connect())
            Issue.record("accepted")
        } catch let error as WaybillError {
            #expect(error.code == .unauthorized)
            #expect(error.mqttReason?.code == .badAuthenticationMethod)
        }
        await transport.shutdown()
    }

    @Test("A server whose signature is wrong is refused, although it has accepted the client")
    func liar() async throws {
        let transport = try transport { $0.clientIdentifier = "liar" }
        let provider = Provider<WireEntry>(transport: transport)
        do {
            try await provider.request(.connect())
            Issue.record("accepted")
        } catch let error as WaybillError {
            #expect(error.code == .unauthorized)
            #expect(error.mqttReason == nil, "\(error)")
        }
        await transport.shutdown()
    }

    @Test("A server that demands two million iterations is refused, unless the app allows them")
    func costly() async throws {
        for maximum in [1_000_000, 2_000_000] {
            let transport = try transport(at: "SCRAM_COSTLY") {
                $0.timeouts.connect = .seconds(60)
                $0.authenticator = SCRAMAuthenticator(
                    userName: "user",
                    password: "pencil",
                    iterations: 4_096...maximum
                )
            }
            let provider = Provider<WireEntry>(transport: transport)
            do {
                try await provider.request(.connect())
                #expect(maximum == 2_000_000)
            } catch let error as WaybillError {
                #expect(error.code == .limitExceeded)
                #expect(maximum == 1_000_000)
            }
            await transport.shutdown()
        }
    }

    /// Between messages: Mosquitto 2.0.11 answers any other packet during a re-authentication with Protocol Error.
    @Test("An open connection is authenticated anew, and messages flow before and after")
    func reauthentication() async throws {
        let log = Log()
        let transport = try transport { $0.wireLogger = log }
        let provider = Provider<WireEntry>(transport: transport)
        // With QoS 0 this side sends no acknowledgement.
        let messages = try await provider.messages(.subscribe(topic, .atMostOnce))
        var iterator = messages.makeAsyncIterator()
        for number in 0..<5 {
            try await transport.reauthenticate()
            try await provider.request(.send(.init("\(number)"), to: topic, .atLeastOnce))
            #expect(try await iterator.next()?.text == "\(number)")
        }
        #expect(log.count("AUTH Re-authenticate") == 5)
        #expect(log.count("AUTH Success") == 5)
        #expect(log.count("CONNECT") == 1)
        await transport.shutdown()
    }

    @Test("A re-authentication with a wrong password ends the connection")
    func reauthenticationRefused() async throws {
        let password = Locked("pencil")
        let transport = try transport {
            $0.authenticator = SCRAMAuthenticator { _ in
                Credentials(userName: "user", password: password.withLock { $0 })
            }
        }
        let provider = Provider<WireEntry>(transport: transport)
        try await provider.request(.connect())
        password.withLock { $0 = "wrong" }
        do {
            try await transport.reauthenticate()
            Issue.record("accepted")
        } catch let error as WaybillError {
            #expect(error.code == .unauthorized, "\(error)")
        }
        try await waitUntil { transport.states.current != .connected }
        await transport.shutdown()
    }

    #if os(Linux)
        @Test("Each reconnection is authenticated, with another nonce")
        func reconnection() async throws {
            let target = try #require(TestServers.port("SCRAM").flatMap { UInt16(exactly: $0) })
            let proxy = try ChaosProxy(to: target, seed: 1)
            let log = Log()
            let transport = try transport(port: proxy.port) {
                $0.wireLogger = log
                $0.reconnection = ReconnectionPolicy()
                $0.reconnection.initialDelay = .milliseconds(10)
            }
            let provider = Provider<WireEntry>(transport: transport)
            let messages = try await provider.messages(.subscribe(topic, .atLeastOnce))
            var iterator = messages.makeAsyncIterator()
            for round in 1...5 {
                try await provider.request(.send(.init("\(round)"), to: topic, .atLeastOnce))
                #expect(try await iterator.next()?.text == "\(round)")
                proxy.dropConnections()
                try await waitUntil { log.count("CONNACK Success") > round }
                try await waitUntil { transport.states.current == .connected }
            }
            #expect(log.count("AUTH Continue") == 2 * log.count("CONNACK Success"))
            await transport.shutdown()
            proxy.close()
        }
    #endif
}
