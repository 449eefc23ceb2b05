import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Tokens that a server refuses without words, byte by byte: the first token is `1`, the next one `2`.
@Suite("MQTT transport: a refused token", .inSimulation, .timeLimit(.minutes(30)))
struct RefusedTokenTests {
    private actor Tokens {
        /// The refused token of each call.
        private(set) var calls: [String?] = []

        func next(_ refused: String?) -> String {
            calls.append(refused)
            return "\(calls.count)"
        }
    }

    private let clock = ManualClock()
    private let tokens = Tokens()

    private static let dismissal: [ScriptedByteStream.Step] = [.reply([0xE0, 1, 0x87]), .finish]

    /// A script that expects CONNECT with a token, and then follows the steps.
    private static func showing(
        _ token: Character?,
        _ steps: [ScriptedByteStream.Step],
        _ version: MQTTConfiguration.Version = .v5
    ) -> ScriptedByteStream {
        var rest = ("0004 4D515454" as Hex).bytes
        rest += [version == .v5 ? 5 : 4, token == nil ? 2 : 0xC2, 0, 60]
        if version == .v5 { rest.append(0) }
        rest += [0, 1, 0x63]
        if let token { rest += [0, 1, 0x75, 0, 1] + Array(String(token).utf8) }
        return ScriptedByteStream(steps: [.expect([0x10, UInt8(rest.count)] + rest)] + steps)
    }

    private static func accept(_ version: MQTTConfiguration.Version = .v5)
        -> ScriptedByteStream.Step
    {
        .reply(version == .v5 ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0])
    }

    /// The same script after a CONNACK.
    private static func accepted(
        _ token: Character?,
        _ steps: [ScriptedByteStream.Step] = []
    ) -> ScriptedByteStream {
        showing(token, [accept()] + steps)
    }

    /// PUBLISH of QoS 1 to `t` in MQTT 5.
    private static func publish(_ text: Character, _ identifier: UInt8) -> [UInt8] {
        [0x32, 7, 0, 1, 0x74, 0, identifier, 0] + Array(String(text).utf8)
    }

    private static func puback(_ identifier: UInt8) -> [UInt8] { [0x40, 2, 0, identifier] }

    /// Returns a client with a token interceptor, or without credentials.
    private func client(
        _ scripts: [ScriptedByteStream],
        _ version: MQTTConfiguration.Version = .v5,
        isRefusal: (@Sendable (WaybillError) -> Bool)? = nil,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        let (transport, provider) = try scripted(scripts, version: version, clock: clock) {
            bare(&$0)
            change(&$0)
        }
        var limits = TokenInterceptor.Configuration()
        if let isRefusal { limits.isRefusal = isRefusal }
        let interceptor = TokenInterceptor(
            .password(userName: "u"),
            configuration: limits
        ) { [tokens] in await tokens.next($0) }
        return (transport, provider.intercepted(interceptor))
    }

    /// Moves the clock until all scripts have ended, or one has failed.
    private func play(_ scripts: [ScriptedByteStream]) async throws {
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts.allSatisfy(\.isComplete) || scripts.contains { $0.failures != [] }
        }
        await untilQuiet()
        #expect(scripts.map(\.failures) == scripts.map { _ in [] })
    }

    private func expectEnd(_ state: String, _ transport: MQTTTransport) {
        #expect("\(transport.states.current)".hasPrefix(state))
    }

    // MARK: DISCONNECT with Not authorized

    @Test("A dismissal: the token is replaced, and the connection made again")
    func dismissed() async throws {
        let scripts = [
            Self.accepted("1", Self.dismissal),
            Self.accepted("2", [.expect(Self.publish("y", 1)), .reply(Self.puback(1))]),
        ]
        let (transport, provider) = try client(scripts)
        try await provider.connect()
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts[1].hasReached(3) || scripts[1].failures != []
        }
        let send = provider.enqueue(.send("y", qos: .atLeastOnce))
        try await play(scripts)
        _ = try await send.receipt
        #expect(await tokens.calls == [nil, "1"])
        await transport.shutdown()
    }

    @Test("Dismissed again: that is final, after one refresh")
    func dismissedAgain() async throws {
        let scripts = [Self.accepted("1", Self.dismissal), Self.accepted("2", Self.dismissal)]
        let (transport, provider) = try client(scripts)
        try await provider.connect()
        try await play(scripts)
        expectEnd("disconnected (unauthorized", transport)
        #expect(await tokens.calls == [nil, "1"])
        await transport.shutdown()
    }

    @Test("A token that the server has accepted for more than ten seconds is replaced, too")
    func dismissedLater() async throws {
        let go: [UInt8] = [0x30, 4, 0, 1, 0x74, 0]
        let scripts = [
            Self.accepted("1", Self.dismissal), Self.accepted("2", [.expect(go)] + Self.dismissal),
            Self.accepted("3"),
        ]
        let (transport, provider) = try client(scripts)
        try await provider.connect()
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts[1].hasReached(3) || scripts[1].failures != []
        }
        await untilQuiet()
        clock.advance(by: .seconds(11))
        try await provider.request(.send(""))
        try await play(scripts)
        #expect(await tokens.calls == [nil, "1", "2"])
        await transport.shutdown()
    }

    @Test("Without anybody to ask, a dismissal is final at once")
    func nobodyToAsk() async throws {
        let script = Self.accepted(nil, Self.dismissal)
        let (transport, provider) = try scripted([script], version: .v5, clock: clock, bare)
        try await provider.connect()
        try await play([script])
        expectEnd("disconnected (unauthorized", transport)
        await transport.shutdown()
    }

    @Test("A source of credentials is asked, with the refused ones")
    func source() async throws {
        let scripts = [
            Self.accepted("1", Self.dismissal), Self.accepted("2", [.finish]),
            Self.showing("3", [.finish]), Self.showing("4", [.finish]), Self.showing("5", []),
        ]
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock) {
            bare(&$0)
            $0.credentials = CredentialSource { [tokens] occasion in
                let token = await tokens.next(occasion.refused?.password)
                return Credentials(userName: "u", password: token)
            }
        }
        try await provider.connect()
        try await play(scripts)
        #expect(await tokens.calls == [nil, "1", nil, "3", nil])
        await transport.shutdown()
    }

    // MARK: A close before CONNACK

    @Test("Silence: one refresh, and no other until a server has accepted", arguments: versions)
    func silence(_ version: MQTTConfiguration.Version) async throws {
        func accepted(_ token: Character) -> ScriptedByteStream {
            Self.showing(token, [Self.accept(version), .finish], version)
        }
        let scripts = [
            accepted("1"), Self.showing("1", [.finish], version),
            Self.showing("2", [.finish], version), Self.showing("2", [.reset], version),
            accepted("2"), Self.showing("2", [.finish], version),
            Self.showing("3", [Self.accept(version)], version),
        ]
        let (transport, provider) = try client(scripts, version)
        try await provider.connect()
        try await play(scripts)
        #expect(await tokens.calls == [nil, "1", "2"])
        await transport.shutdown()
    }

    @Test("Silence at the first connect: the call has the result of the second token")
    func silenceAtFirst() async throws {
        let scripts = [Self.showing("1", [.finish]), Self.accepted("2")]
        let (transport, provider) = try client(scripts)
        try await provider.connect()
        #expect(await tokens.calls == [nil, "1"])
        await transport.shutdown()

        let others = [Self.showing("3", [.finish]), Self.showing("4", [.finish])]
        let (next, nextProvider) = try client(others, isRefusal: nil) { $0.reconnection = .never }
        await expectError(.connectionLost) { try await nextProvider.connect() }
        #expect(await tokens.calls == [nil, "1", nil, "3"])
        await next.shutdown()
    }

    @Test("Silence is no refusal where the app says so")
    func noRefusal() async throws {
        let scripts = [
            Self.accepted("1", [.finish]), Self.showing("1", [.finish]), Self.accepted("1"),
        ]
        let (transport, provider) = try client(scripts, isRefusal: { $0.code == .unauthorized })
        try await provider.connect()
        try await play(scripts)
        #expect(await tokens.calls == [nil])
        await transport.shutdown()
    }

    // MARK: A message that is not authorized

    @Test("A message that the server answers by a dismissal: the second one fails it, no stream")
    func message() async throws {
        let bad = Self.publish("x", 1)
        let scripts = [
            Self.accepted("1", [.expect(bad + Self.publish("y", 2))] + Self.dismissal),
            Self.accepted("2", [.expect(bad)] + Self.dismissal),
            Self.accepted("2", [.expect(Self.publish("y", 1)), .reply(Self.puback(1))]),
        ]
        let (transport, provider) = try client(scripts)
        try await provider.connect()
        let sends = ["x", "y"].map { provider.enqueue(.send($0, qos: .atLeastOnce)) }
        try await play(scripts)
        let error = await expectError(.unauthorized) { try await sends[0].receipt }
        #expect(error?.mqttReason?.code == .notAuthorized)
        #expect(error?.message == "the server ended 2 connections after this message")
        _ = try await sends[1].receipt
        #expect(await tokens.calls == [nil, "1"])
        #expect(transport.states.current.isConnected)
        await transport.shutdown()
    }

    @Test("A send that a final DISCONNECT leaves unanswered has its code")
    func codeOfTheCause() async throws {
        let go: [UInt8] = [0x30, 4, 0, 1, 0x74, 0]
        let script = Self.accepted(
            nil,
            [.expect(Self.publish("x", 1)), .expect(go)] + Self.dismissal
        )
        let (transport, provider) = try scripted([script], version: .v5, clock: clock, bare)
        try await provider.connect()
        let send = provider.enqueue(.send("x", qos: .atLeastOnce))
        try await waitUntil { script.hasReached(4) }
        await untilQuiet()
        clock.advance(by: .seconds(11))
        try await provider.request(.send(""))
        let error = await expectError(.unauthorized) { try await send.receipt }
        #expect(error?.mayHaveArrived == true && error?.mqttReason?.code == .notAuthorized)
        await transport.shutdown()
    }
}
