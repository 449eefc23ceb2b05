import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

@Suite("MQTT transport: enhanced authentication", .inSimulation, .timeLimit(.minutes(30)))
struct EnhancedAuthenticationTests {
    /// A broker with the user `user` and the password `pencil`.
    private func scram(
        _ service: LoopbackBroker.Service = .mqtt,
        _ change: (inout LoopbackBroker.Configuration) -> Void = { _ in }
    ) throws -> Fixture {
        let authentication = try LoopbackAuthentication.scram(["user": "pencil"])
        return try Fixture(service) {
            $0.authentication = authentication
            change(&$0)
        }
    }

    /// A broker with the method `m`, which accepts after one challenge.
    private func script(
        _ answer:
            @escaping @Sendable ([[UInt8]?]) -> LoopbackAuthentication.Answer = { data in
                data.count == 1 ? .challenge([1]) : .success([2])
            }
    ) throws -> Fixture {
        try Fixture { $0.authentication = LoopbackAuthentication(method: "m", answer: answer) }
    }

    private final class Log: WireLogger {
        let lines = Locked<[String]>([])

        func log(_ record: WireRecord) { lines.withLock { $0.append(record.text) } }
    }

    // MARK: SCRAM

    @Test(
        "SCRAM-SHA-256 connects, and the wire log shows no data of it",
        .outsideSimulation,
        arguments: [LoopbackBroker.Service.mqtt, .mqttOverWebSocket]
    )
    func connects(service: LoopbackBroker.Service) async throws {
        let fixture = try scram(service)
        let log = Log()
        let (transport, provider) = try fixture.provider {
            $0.authenticator = SCRAMAuthenticator(userName: "user", password: "pencil")
            $0.wireLogger = log
        }
        let messages = try await provider.messages(.subscribe("t"), as: String.self)
        try await provider.request(.send("x", to: "t", qos: .exactlyOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == "x")
        let lines = log.lines.withLock { $0 }
        #expect(lines.contains { $0.contains("AUTH Continue authentication") })
        for line in lines + fixture.lines.all {
            #expect(!line.contains("n=user") && !line.contains("r=") && !line.contains("p="))
        }
        await fixture.end(transport)
    }

    @Test(
        "A wrong password and an unknown user are refused",
        .outsideSimulation,
        arguments: ["user", "nobody"]
    )
    func wrongPassword(user: String) async throws {
        let fixture = try scram()
        let (transport, provider) = try fixture.provider {
            $0.authenticator = SCRAMAuthenticator(userName: user, password: "pencils")
        }
        let error = await expectError(.unauthorized) { try await provider.request(.connect) }
        #expect(error?.mqttReason?.code == .notAuthorized)
        try await waitUntil { fixture.broker.connectionCount == 0 }
        await fixture.end(transport)
    }

    @Test("Another method, and none, are refused with 0x8C")
    func otherMethod() async throws {
        let fixture = try scram()
        for authenticator in [TestAuthenticator(), nil] {
            let (transport, provider) = try fixture.provider { $0.authenticator = authenticator }
            let error = await expectError(.unauthorized) { try await provider.request(.connect) }
            #expect(error?.mqttReason?.code == .badAuthenticationMethod)
            await transport.shutdown()
        }
        await fixture.broker.stop()
    }

    @Test("A server that accepts without proving itself is refused")
    func unprovenServer() async throws {
        let fixture = try Fixture {
            $0.authentication = LoopbackAuthentication(method: "SCRAM-SHA-256") { _ in
                .success(Array("v=AAAA".utf8))
            }
        }
        let (transport, provider) = try fixture.provider {
            $0.authenticator = SCRAMAuthenticator(userName: "user", password: "pencil")
        }
        await expectError(.unauthorized) { try await provider.request(.connect) }
        try await waitUntil { fixture.broker.connectionCount == 0 }
        #expect(
            fixture.lines.all.contains { $0.contains("DISCONNECT Unspecified error (0x80)") }
        )
        await fixture.end(transport)
    }

    /// What a server demands first, and the code of the error.
    static let demandRows: [(String, WaybillError.Code)] = [
        ("r=%nonce%x,s=AAAA,i=4095", .limitExceeded),
        ("r=%nonce%x,s=AAAA,i=1000001", .limitExceeded),
        ("r=other,s=AAAA,i=4096", .protocolViolation),
        ("m=x,r=%nonce%x,s=AAAA,i=4096", .protocolViolation),
        ("", .protocolViolation),
        ("e=unknown-user", .unauthorized),
    ]

    @Test("What a server may not demand of SCRAM fails the connect", arguments: demandRows)
    func demands(first: String, code: WaybillError.Code) async throws {
        let fixture = try Fixture {
            $0.authentication = LoopbackAuthentication(method: "SCRAM-SHA-256") { data in
                let sent = String(decoding: (data.first ?? nil) ?? [], as: UTF8.self)
                let nonce = sent.split(separator: "r=").last.map(String.init) ?? ""
                return .challenge(Array(first.replacing("%nonce%", with: nonce).utf8))
            }
        }
        let (transport, provider) = try fixture.provider {
            $0.authenticator = SCRAMAuthenticator(userName: "user", password: "pencil")
        }
        await expectError(code) { try await provider.request(.connect) }
        await fixture.end(transport)
    }

    @Test("More iterations than the system can count are refused, whatever the app allows")
    func tooManyIterations() async throws {
        let authenticator = SCRAMAuthenticator(
            userName: "user",
            password: "pencil",
            iterations: 4_096...Int.max
        )
        var exchange = try await authenticator.makeExchange(MQTTAuthenticationContext(host: "h"))
        let sent = String(decoding: try await exchange.begin() ?? [], as: UTF8.self)
        let nonce = sent.split(separator: "r=").last ?? ""
        let demand = Array("r=\(nonce)x,s=AAAA,i=2147483648".utf8)
        let error = await #expect(throws: WaybillError.self) {
            try await exchange.respond(to: demand)
        }
        #expect(error?.code == .limitExceeded)
    }

    @Test("Names and passwords that need preparation are refused before anything is sent")
    func unprepared() async throws {
        let fixture = try scram()
        for (user, password) in [("é", "p"), ("u", "pässword"), ("", "p"), ("u", "")] {
            let (transport, provider) = try fixture.provider {
                $0.authenticator = SCRAMAuthenticator(userName: user, password: password)
            }
            await expectError(.invalidEntry) { try await provider.request(.connect) }
            await transport.shutdown()
        }
        #expect(fixture.lines.all.isEmpty)
        await fixture.broker.stop()
    }

    @Test("An authenticator and its configuration show neither name nor password")
    func reflection() {
        let authenticator = SCRAMAuthenticator(userName: "user", password: "pencil")
        var configuration = MQTTConfiguration()
        configuration.authenticator = authenticator
        for value in [authenticator, configuration] as [Any] {
            var text = ""
            dump(value, to: &text)
            text += "\(value)" + String(reflecting: value)
            #expect(!text.contains("pencil") && !text.contains("user\""))
        }
    }

    // MARK: Support

    @Test("MQTT 3.1.1 has no enhanced authentication: nothing is sent")
    func oldVersion() async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider(.v3_1_1) {
            $0.authenticator = TestAuthenticator()
        }
        let error = await expectError(.unsupported) { try await provider.request(.connect) }
        #expect(error?.option == .authenticator)
        await expectError(.unsupported) { try await transport.reauthenticate() }
        #expect(fixture.lines.all.isEmpty)
        await fixture.end(transport)
    }

    // MARK: Reconnection

    @Test("Each reconnection has an exchange of its own")
    func reconnection() async throws {
        let fixture = try script()
        let authenticator = TestAuthenticator()
        let (transport, provider) = try fixture.provider {
            $0.authenticator = authenticator
            $0.reconnection = ReconnectionPolicy()
            $0.reconnection.initialDelay = .milliseconds(1)
        }
        try await provider.request(.connect)
        for round in 2...4 {
            fixture.broker.dropConnections()
            try await waitUntil { authenticator.contexts.count == round }
            try await waitUntil { transport.states.current == .connected }
        }
        #expect(authenticator.contexts.allSatisfy { $0.host == "127.0.0.1" })
        #expect(authenticator.contexts.allSatisfy { !$0.isReauthentication })
        await fixture.end(transport)
    }

    @Test("A failure of the authenticator does not end the attempts to reconnect")
    func failureWhileReconnecting() async throws {
        let fixture = try script()
        let authenticator = TestAuthenticator()
        let (transport, provider) = try fixture.provider {
            $0.authenticator = authenticator
            $0.reconnection = ReconnectionPolicy()
            $0.reconnection.initialDelay = .milliseconds(1)
            $0.reconnection.maximumDelay = .milliseconds(1)
        }
        try await provider.request(.connect)
        authenticator.change { steps in steps.make = { _ in throw TestAuthenticator.Failure() } }
        fixture.broker.dropConnections()
        try await waitUntil { authenticator.contexts.count >= 3 }
        authenticator.change { steps in
            steps.make = { _ in }
            steps.respond = { _ in throw TestAuthenticator.Failure() }
        }
        let count = authenticator.contexts.count
        try await waitUntil { authenticator.contexts.count >= count + 3 }
        authenticator.change { steps in steps.respond = { $0 } }
        try await waitUntil { transport.states.current == .connected }
        await fixture.end(transport)
    }

    // MARK: Failures

    /// A step that fails, and the code of the connect's error.
    static let failingSteps: [(String, WaybillError.Code)] = [
        ("make", .interceptorFailed), ("begin", .interceptorFailed),
        ("respond", .interceptorFailed), ("finish", .unauthorized),
    ]

    @Test(
        "An error of each step fails the connect, with the error as the cause",
        arguments: failingSteps
    )
    func failures(step: String, code: WaybillError.Code) async throws {
        for own in [false, true] {
            let error: any Error =
                own ? WaybillError(.rejected, "own") : TestAuthenticator.Failure()
            let fixture = try script()
            let authenticator = TestAuthenticator { steps in
                switch step {
                case "make": steps.make = { _ in throw error }
                case "begin": steps.begin = { throw error }
                case "respond": steps.respond = { _ in throw error }
                default: steps.finish = { _ in throw error }
                }
            }
            let (transport, provider) = try fixture.provider { $0.authenticator = authenticator }
            let found = await expectError(own ? .rejected : code) {
                try await provider.request(.connect)
            }
            if !own { #expect(found?.underlying is TestAuthenticator.Failure) }
            // The broker has noted the DISCONNECT by then.
            try await waitUntil { fixture.broker.connectionCount == 0 }
            let isSent = step == "respond" || step == "finish"
            #expect(
                fixture.lines.all.contains { $0.contains("DISCONNECT Unspecified error (0x80)") }
                    == isSent
            )
            await fixture.end(transport)
        }
    }

    @Test("The data of the server and of the client pass unchanged, nil as nil")
    func data() async throws {
        let seen = Locked<[[UInt8]?]>([])
        let fixture = try script { data in
            if data.count < 3 { return .challenge(data.count == 1 ? nil : []) }
            seen.withLock { $0 = data }
            return .success(nil)
        }
        let received = Locked<[[UInt8]?]>([])
        let (transport, provider) = try fixture.provider {
            $0.authenticator = TestAuthenticator { steps in
                steps.begin = { [7] }
                steps.respond = { data in
                    received.withLock { $0.append(data) }
                    return data
                }
                steps.finish = { data in received.withLock { $0.append(data) } }
            }
        }
        try await provider.request(.connect)
        #expect(seen.withLock { $0 } == [[7], nil, []])
        #expect(received.withLock { $0 } == [nil, [], nil])
        await fixture.end(transport)
    }
}
