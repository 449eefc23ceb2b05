import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

@Suite("MQTT transport: re-authentication", .inSimulation, .timeLimit(.minutes(30)))
struct ReauthenticationTests {
    /// A broker whose answers a test changes, and a client of it.
    private struct Setting: Sendable {
        /// The broker's script, and the number of its re-authentications.
        final class Script: Sendable {
            typealias Answer = @Sendable ([[UInt8]?]) -> LoopbackAuthentication.Answer

            let answer = Locked<Answer> { _ in .success(nil) }
            let repetitionCount = Locked(0)

            func note(_ occurrence: LoopbackOccurrence) {
                guard case .reauthenticated = occurrence else { return }
                repetitionCount.withLock { $0 += 1 }
            }
        }

        let fixture: Fixture
        let script = Script()
        let authenticator = TestAuthenticator()
        let transport: MQTTTransport
        let provider: Provider<MQTTEntry>

        init(_ change: (inout MQTTConfiguration) -> Void = { _ in }) throws {
            let (script, authenticator) = (script, authenticator)
            fixture = try Fixture {
                $0.authentication = LoopbackAuthentication(method: "m") { data in
                    script.answer.withLock { $0 }(data)
                }
                $0.observe = { script.note($0) }
            }
            (transport, provider) = try fixture.provider {
                $0.authenticator = authenticator
                change(&$0)
            }
        }

        func answers(_ body: @escaping Script.Answer) {
            script.answer.withLock { $0 = body }
        }

        var repetitionCount: Int { script.repetitionCount.withLock { $0 } }
    }

    @Test("An open connection is authenticated anew, again and again, while messages flow")
    func messagesFlow() async throws {
        let setting = try Setting()
        let messages = try await setting.provider.messages(.subscribe("t"), as: String.self)
        setting.answers { data in data.count < 3 ? .challenge([UInt8(data.count)]) : .success([9]) }
        let sending = Task { [provider = setting.provider] in
            for number in 0..<200 {
                try await provider.request(.send("\(number)", to: "t", qos: .atLeastOnce))
            }
        }
        for round in 1...5 {
            try await setting.transport.reauthenticate()
            #expect(setting.repetitionCount == round)
        }
        try await sending.value
        var iterator = messages.makeAsyncIterator()
        for number in 0..<200 { #expect(try await iterator.next() == "\(number)") }
        let kinds = setting.authenticator.contexts.map(\.isReauthentication)
        #expect(kinds == [false, true, true, true, true, true])
        #expect(setting.transport.states.current == .connected)
        await setting.fixture.end(setting.transport)
    }

    @Test("SCRAM authenticates anew, with another nonce", .outsideSimulation)
    func scram() async throws {
        let authentication = try LoopbackAuthentication.scram(["user": "pencil"])
        let fixture = try Fixture { $0.authentication = authentication }
        let (transport, provider) = try fixture.provider {
            $0.authenticator = SCRAMAuthenticator(userName: "user", password: "pencil")
        }
        try await provider.request(.connect)
        for _ in 0..<3 { try await transport.reauthenticate() }
        #expect(fixture.lines.all.count { $0.contains("AUTH Re-authenticate") } == 3)
        await fixture.end(transport)
    }

    @Test("A refusal ends the connection, and the call fails with its reason")
    func refused() async throws {
        let setting = try Setting()
        try await setting.provider.request(.connect)
        setting.answers { _ in .refusal }
        let error = await expectError(.unauthorized) {
            try await setting.transport.reauthenticate()
        }
        #expect(error?.mqttReason?.code == .notAuthorized)
        try await waitUntil { setting.fixture.broker.connectionCount == 0 }
        await expectError(.notConnected) { try await setting.transport.reauthenticate() }
        await setting.fixture.end(setting.transport)
    }

    @Test("Without a connection, and without an authenticator, there is nothing to authenticate")
    func unsupported() async throws {
        let setting = try Setting()
        await expectError(.notConnected) { try await setting.transport.reauthenticate() }
        #expect(setting.authenticator.contexts.isEmpty)
        await setting.fixture.end(setting.transport)
        let plain = try Fixture()
        let (transport, provider) = try plain.provider()
        try await provider.request(.connect)
        let error = await expectError(.unsupported) { try await transport.reauthenticate() }
        #expect(error?.option == .authenticator)
        #expect(!plain.lines.all.contains { $0.contains("AUTH") })
        await plain.end(transport)
    }

    @Test("A second call during the first is rejected; the first one ends as it would have")
    func twoAtOnce() async throws {
        let setting = try Setting()
        try await setting.provider.request(.connect)
        let (entered, released) = (Promised(), Promised())
        setting.authenticator.change { steps in
            steps.begin = {
                entered.resolve()
                await released.wait()
                return nil
            }
        }
        let first = Task { [transport = setting.transport] in
            try await transport.reauthenticate()
        }
        await entered.wait()
        await expectError(.rejected) { try await setting.transport.reauthenticate() }
        released.resolve()
        try await first.value
        setting.authenticator.change { $0.begin = { nil } }
        try await setting.transport.reauthenticate()
        #expect(setting.repetitionCount == 2)
        await setting.fixture.end(setting.transport)
    }

    @Test("Many calls at once: each ends, and the connection stays")
    func concurrency() async throws {
        let setting = try Setting()
        try await setting.provider.request(.connect)
        let outcomes = await withTaskGroup(of: WaybillError.Code?.self) { group in
            for _ in 0..<50 {
                group.addTask { [transport = setting.transport] in
                    do { try await transport.reauthenticate() } catch {
                        return (error as? WaybillError)?.code ?? .cancelled
                    }
                    return nil
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.allSatisfy { $0 == nil || $0 == .rejected })
        #expect(outcomes.count { $0 == nil } == setting.repetitionCount)
        #expect(setting.repetitionCount > 0)
        #expect(setting.transport.states.current == .connected)
        await setting.fixture.end(setting.transport)
    }

    /// A step that fails, whether AUTH was sent by then, and the code of the error.
    static let failingSteps: [(String, Bool, WaybillError.Code)] = [
        ("make", false, .interceptorFailed), ("begin", false, .interceptorFailed),
        ("respond", true, .interceptorFailed), ("finish", true, .unauthorized),
    ]

    @Test(
        "An error of a step fails the call, and closes the connection only after AUTH",
        arguments: failingSteps
    )
    func failures(step: String, isSent: Bool, code: WaybillError.Code) async throws {
        let setting = try Setting()
        try await setting.provider.request(.connect)
        setting.answers { data in data.count < 2 ? .challenge(nil) : .success(nil) }
        setting.authenticator.change { steps in
            switch step {
            case "make": steps.make = { _ in throw TestAuthenticator.Failure() }
            case "begin": steps.begin = { throw TestAuthenticator.Failure() }
            case "respond": steps.respond = { _ in throw TestAuthenticator.Failure() }
            default: steps.finish = { _ in throw TestAuthenticator.Failure() }
            }
        }
        let error = await expectError(code) { try await setting.transport.reauthenticate() }
        #expect(error?.underlying is TestAuthenticator.Failure)
        if isSent {
            try await waitUntil { setting.fixture.broker.connectionCount == 0 }
        } else {
            #expect(setting.transport.states.current == .connected)
            setting.authenticator.change { $0 = TestAuthenticator.Steps() }
            try await setting.transport.reauthenticate()
        }
        await setting.fixture.end(setting.transport)
    }

    @Test("After a failed step of the app's code the transport connects again")
    func reconnects() async throws {
        let setting = try Setting {
            $0.reconnection = ReconnectionPolicy()
            $0.reconnection.initialDelay = .milliseconds(1)
        }
        try await setting.provider.request(.connect)
        setting.answers { data in data.count < 2 ? .challenge(nil) : .success(nil) }
        setting.authenticator.change { steps in
            steps.respond = { _ in throw TestAuthenticator.Failure() }
        }
        await expectError(.interceptorFailed) { try await setting.transport.reauthenticate() }
        setting.authenticator.change { $0 = TestAuthenticator.Steps() }
        try await waitUntil { setting.transport.states.current == .connected }
        try await setting.transport.reauthenticate()
        await setting.fixture.end(setting.transport)
    }

    @Test("A cancelled call ends at once; the exchange continues without it")
    func cancelled() async throws {
        let setting = try Setting()
        try await setting.provider.request(.connect)
        setting.answers { data in data.count < 2 ? .challenge(nil) : .success(nil) }
        let (entered, released) = (Promised(), Promised())
        setting.authenticator.change { steps in
            steps.respond = { _ in
                entered.resolve()
                await released.wait()
                return nil
            }
        }
        let call = Task { [transport = setting.transport] in
            try await transport.reauthenticate()
        }
        await entered.wait()
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        await expectError(.rejected) { try await setting.transport.reauthenticate() }
        released.resolve()
        try await waitUntil { setting.repetitionCount == 1 }
        #expect(setting.transport.states.current == .connected)
        await setting.fixture.end(setting.transport)
    }

    @Test("Shutdown during an exchange ends it at once, although the app's code ignores it")
    func shutdown() async throws {
        let setting = try Setting()
        try await setting.provider.request(.connect)
        setting.answers { _ in .challenge(nil) }
        let (entered, released) = (Promised(), Promised())
        setting.authenticator.change { steps in
            steps.respond = { _ in
                entered.resolve()
                await released.wait()
                return nil
            }
        }
        let call = Task { [transport = setting.transport] in
            try await transport.reauthenticate()
        }
        await entered.wait()
        await setting.transport.shutdown()
        await expectError(.shutDown) { try await call.value }
        released.resolve()
        await setting.fixture.broker.stop()
    }

    @Test("Reason string and user properties go both ways in AUTH")
    func explained() async throws {
        let script = ScriptedByteStream(
            .skip(20),
            .reply(
                ("F0 15 18 13 15 0001 6D 16 0001 01 1F 0001 72 26 0001 6B 0001 76" as Hex).bytes
            ),
            .expect(
                ("F0 15 18 13 1F 0001 77 15 0001 6D 16 0001 02 26 0001 61 0001 62" as Hex).bytes
            ),
            .reply(("20 07 00 00 04 15 0001 6D" as Hex).bytes),
            .expect(("F0 11 19 0F 1F 0001 77 15 0001 6D 26 0001 61 0001 62" as Hex).bytes),
            .reply(("F0 0A 00 08 15 0001 6D 1F 0001 64" as Hex).bytes)
        )
        let heard = Locked<[MQTTAuthProperties]>([])
        let authenticator = TestAuthenticator {
            $0.respond = { _ in [2] }
            $0.properties = MQTTAuthProperties(reasonString: "w", userProperties: ["a": "b"])
            $0.receive = { properties in heard.withLock { $0.append(properties) } }
        }
        let (transport, provider) = try scripted([script], version: .v5) {
            bare(&$0)
            $0.reconnection = .never
            $0.authenticator = authenticator
        }
        try await provider.request(.connect)
        try await transport.reauthenticate()
        #expect(script.failures == [] && script.isComplete)
        let said = [
            MQTTAuthProperties(reasonString: "r", userProperties: ["k": "v"]),
            MQTTAuthProperties(reasonString: "d"),
        ]
        #expect(heard.withLock { $0 } == said)
        await transport.shutdown()
    }
}
