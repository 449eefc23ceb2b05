import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

@Suite(
    "MQTT transport: a server that sends its clients elsewhere (MQTT 5, 4.11)",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct RedirectTests {
    private static let connack = ("20 03 00 00 00" as Hex).bytes

    /// The first reconnection waits only as long as the server asks. No delay is random here.
    @Test(
        "A DISCONNECT that says so: the same server is left alone for the busy delay",
        arguments: [UInt8(0x9C), 0x9D]
    )
    func disconnected(code: UInt8) async throws {
        let clock = ManualClock()
        let first = ScriptedByteStream(
            .skip(27),
            .reply(Self.connack),
            .reply([0xE0, 0x01, code])
        )
        let second = ScriptedByteStream(.skip(27), .reply(Self.connack))
        let (transport, provider) = try scripted([first, second], version: .v5, clock: clock)
        try await provider.request(.connect)
        try await waitUntil { "\(transport.states.current)".hasPrefix("waiting") }
        guard case .waiting(_, let cause) = transport.states.current else {
            Issue.record("\(transport.states.current)")
            return
        }
        #expect(cause.isServerBusy && cause.code == .connectionLost)
        clock.advance(by: .seconds(4))
        #expect(!second.hasReached(2))
        clock.advance(by: .seconds(1))
        try await waitUntil { "\(transport.states.current)" == "connected" }
        await transport.shutdown()
    }

    @Test("Where there is another host, that one is connected to without a wait")
    func otherHost() async throws {
        let first = ScriptedByteStream(
            .skip(27),
            .reply(Self.connack),
            .reply(("E0 01 9C" as Hex).bytes)
        )
        let second = ScriptedByteStream(.skip(27), .reply(Self.connack))
        let (transport, provider) = try scripted([first, second], version: .v5) {
            $0.failover.hosts = ["b"]
        }
        try await provider.request(.connect)
        try await waitUntil { second.hasReached(3) }
        await transport.shutdown()
    }

    @Test("A CONNACK that says so can be retried later; one of a server that has moved is final")
    func refused() async throws {
        for (code, outcome) in [
            (UInt8(0x9C), WaybillError.Code.connectionRefused), (0x9D, .rejected),
        ] {
            let script = ScriptedByteStream(.skip(27), .reply([0x20, 0x03, 0x00, code, 0x00]))
            let (transport, provider) = try scripted([script], version: .v5)
            let error = await expectError(outcome) { try await provider.request(.connect) }
            #expect(error?.isServerBusy == (code == 0x9C))
            await transport.shutdown()
        }
    }

    @Test("A server whose packets are too small for an acknowledgement is refused, by a limit")
    func packetSize() async throws {
        let script = ScriptedByteStream(
            .skip(27),
            .reply(("20 08 00 00 05 27 00 00 00 04" as Hex).bytes),
            .expect(("E0 01 95" as Hex).bytes)
        )
        let (transport, provider) = try scripted([script], version: .v5)
        await expectError(.limitExceeded) { try await provider.request(.connect) }
        #expect(script.failures == [])
        await transport.shutdown()
    }

    // MARK: Followed

    /// A CONNACK, or else a DISCONNECT, that refers to other servers.
    private static func referral(
        _ code: UInt8,
        to servers: String,
        isConnack: Bool = true
    ) -> [UInt8] {
        let property = [0x1C, 0, UInt8(servers.utf8.count)] + Array(servers.utf8)
        let body = (isConnack ? [0, code] : [code]) + [UInt8(property.count)] + property
        return [isConnack ? 0x20 : 0xE0, UInt8(body.count)] + body
    }

    /// A server that refuses with a referral.
    private static func referring(_ code: UInt8, to servers: String) -> ScriptedByteStream {
        ScriptedByteStream(.skip(27), .reply(referral(code, to: servers)))
    }

    /// A server that accepts, and waits for a packet that never comes.
    private static func accepting() -> ScriptedByteStream {
        ScriptedByteStream(.skip(27), .reply(connack), .skip(1))
    }

    /// A client that follows referrals, and the hosts that it connects to.
    private func following(
        _ scripts: [ScriptedByteStream],
        clock: ManualClock = ManualClock(),
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>, LineLog) {
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock) {
            $0.redirects.follows = .always
            change(&$0)
        }
        let log = LineLog()
        observe(transport.events) { event in
            switch event.kind {
            case .connecting: log.append(event.host ?? "")
            case .redirected: log.append("\(event.host ?? "") > \(event.otherHosts ?? [])")
            default: break
            }
        }
        return (transport, provider, log)
    }

    @Test("A CONNACK leads to the server that it names", arguments: [UInt8(0x9C), 0x9D])
    func followed(code: UInt8) async throws {
        let scripts = [Self.referring(code, to: "b:7 [::1]"), Self.accepting()]
        let (transport, provider, log) = try following(scripts)
        try await provider.request(.connect)
        let isDone = {
            log.all == ["script:1883", "script:1883 > [\"b:7\", \"[::1]:1883\"]", "b:7"]
        }
        try await waitUntil { isDone() }
        await transport.shutdown()
    }

    @Test("The next of several servers is tried; a host of the failover after them")
    func several() async throws {
        let dead = { ScriptedByteStream(.skip(27), .reset) }
        let scripts = [Self.referring(0x9C, to: "b c"), dead(), dead(), Self.accepting()]
        let (transport, provider, log) = try following(scripts) { $0.failover.hosts = ["d"] }
        try await provider.request(.connect)
        try await waitUntil { log.all.filter { !$0.contains(">") }.count == 4 }
        #expect(
            log.all.filter { !$0.contains(">") }
                == ["script:1883", "b:1883", "c:1883", "d:1883"]
        )
        await transport.shutdown()
    }

    @Test("Servers that refer to each other: an error that names them, after one visit to each")
    func loop() async throws {
        let scripts = [
            Self.referring(0x9C, to: "b"), Self.referring(0x9D, to: "script"), Self.accepting(),
        ]
        let (transport, provider, log) = try following(scripts)
        let error = await expectError(.connectionRefused) { try await provider.request(.connect) }
        #expect(
            error?.message.contains(
                "b:1883: the servers refer to each other: script:1883 → b:1883 → script:1883"
            ) == true
        )
        #expect(error?.isServerBusy == true)
        let failure = try #require(error?.underlying as? FailoverFailure)
        #expect(failure.attempts.map(\.host) == ["script:1883", "b:1883"])
        #expect(failure.attempts.last?.error.mqttReason?.serverReference == "script")
        try await waitUntil { log.all.count == 4 }
        #expect(log.all.last == "b:1883 > []")
        #expect(!scripts[2].hasReached(2))
        await transport.shutdown()
    }

    @Test("No more referrals than allowed are followed")
    func tooMany() async throws {
        let scripts = (0..<5).map { Self.referring(0x9C, to: "b\($0)") } + [Self.accepting()]
        let (transport, provider, _) = try following(scripts) { $0.redirects.maximumHops = 4 }
        let error = await expectError(.connectionRefused) { try await provider.request(.connect) }
        #expect(
            error?.message.contains("b3:1883: the servers refer to too many others: ") == true
        )
        #expect(!scripts[5].hasReached(2))
        await transport.shutdown()
        let again = (0..<4).map { Self.referring(0x9C, to: "b\($0)") } + [Self.accepting()]
        let (other, otherProvider, _) = try following(again) { $0.redirects.maximumHops = 4 }
        try await otherProvider.request(.connect)
        await other.shutdown()
    }

    @Test(
        "Not followed: without TLS by default, never, or with no hop allowed",
        arguments: [
            MQTTRedirectPolicy(), MQTTRedirectPolicy(follows: .never),
            MQTTRedirectPolicy(follows: .always, maximumHops: 0),
        ]
    )
    func notFollowed(policy: MQTTRedirectPolicy) async throws {
        let scripts = [Self.referring(0x9C, to: "b"), Self.accepting()]
        let (transport, provider, log) = try following(scripts) { $0.redirects = policy }
        let error = await expectError(.connectionRefused) { try await provider.request(.connect) }
        #expect(error?.mqttReason?.serverReference == "b")
        #expect(!scripts[1].hasReached(2))
        try await waitUntil { log.all == ["script:1883", "script:1883 > []"] }
        await transport.shutdown()
    }

    @Test(
        "A reference that cannot be read leads nowhere",
        arguments: ["mqtts://b", "b:0", "user:password@b", "", "::1"]
    )
    func unreadable(reference: String) async throws {
        let scripts = [Self.referring(0x9C, to: reference), Self.accepting()]
        let (transport, provider, _) = try following(scripts)
        await expectError(.connectionRefused) { try await provider.request(.connect) }
        #expect(!scripts[1].hasReached(2))
        await transport.shutdown()
    }

    @Test("A DISCONNECT leads to the server that it names, without the delay of a busy server")
    func disconnectFollowed() async throws {
        let moving = ScriptedByteStream(
            .skip(27),
            .reply(Self.connack),
            .reply(Self.referral(0x9C, to: "b:7", isConnack: false))
        )
        let (transport, provider, log) = try following([moving, Self.accepting()])
        try await provider.request(.connect)
        try await waitUntil { log.all.last == "b:7" }
        try await waitUntil { "\(transport.states.current)" == "connected" }
        await transport.shutdown()
    }

    @Test(
        "After a loss: a server that stands in comes first; when the app connects, one that is moved to",
        arguments: [UInt8(0x9C), 0x9D]
    )
    func remembered(code: UInt8) async throws {
        // Lost after a PUBLISH of 7 bytes.
        let lost = ScriptedByteStream(.skip(27), .reply(Self.connack), .skip(7), .reset)
        let scripts = [
            Self.referring(code, to: "b"), lost, Self.accepting(), Self.accepting(),
        ]
        let clock = ManualClock()
        let (transport, provider, log) = try following(scripts, clock: clock)
        func hosts() -> [String] { log.all.filter { !$0.contains(">") } }
        try await provider.request(.connect)
        try await provider.request(.send("x"))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
            hosts().count == 3 && "\(transport.states.current)" == "connected"
        }
        #expect(hosts() == ["script:1883", "b:1883", "b:1883"])
        try await provider.request(.disconnect)
        try await provider.request(.connect)
        try await waitUntil { hosts().count == 4 }
        #expect(hosts().last == (code == 0x9D ? "b:1883" : "script:1883"))
        await transport.shutdown()
    }

    @Test(
        "Servers that accept and refer to each other: the loop ends with the delay of a busy server"
    )
    func slowLoop() async throws {
        func moving(to host: String) -> ScriptedByteStream {
            ScriptedByteStream(
                .skip(27),
                .reply(Self.connack),
                .reply(Self.referral(0x9C, to: host, isConnack: false))
            )
        }
        let scripts = [moving(to: "b"), moving(to: "script"), Self.accepting()]
        let clock = ManualClock()
        let (transport, provider, _) = try following(scripts, clock: clock) {
            $0.reconnection.initialDelay = .zero
            $0.reconnection.maximumDelay = .zero
        }
        try await provider.request(.connect)
        // The second wait is the least one, which is not for a busy server.
        try await waitUntil(moving: { clock.advance(by: .milliseconds(1)) }) {
            guard case .waiting(_, let cause) = transport.states.current else { return false }
            return cause.message.hasPrefix("the servers refer to each other")
        }
        clock.advance(by: .milliseconds(4_900))
        await untilQuiet()
        #expect(!scripts[2].hasReached(2))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
            "\(transport.states.current)" == "connected"
        }
        await transport.shutdown()
    }

    @Test("Over TLS with a verified server the default follows; nothing else does")
    func hops() {
        var any = TLSOptions()
        any.dangerouslyAcceptsAnyCertificate = true
        var pinned = any
        pinned.pinnedPublicKeys = [[UInt8](repeating: 0, count: 32)]
        let policy = MQTTRedirectPolicy()
        #expect(policy.hops(isSecure: true, TLSOptions()) == 5)
        #expect(policy.hops(isSecure: true, pinned) == 5)
        #expect(policy.hops(isSecure: true, any) == 0)
        #expect(policy.hops(isSecure: false, TLSOptions()) == 0)
        let always = MQTTRedirectPolicy(follows: .always, maximumHops: -1)
        #expect(always.hops(isSecure: false, any) == 0)
        #expect(MQTTRedirectPolicy(follows: .always).hops(isSecure: false, any) == 5)
        #expect(MQTTRedirectPolicy(follows: .never).hops(isSecure: true, any) == 0)
    }
}
