import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Several hosts, and a proxy before them, on a clock that stands still.
@Suite("MQTT transport: hosts and proxies", .inSimulation, .timeLimit(.minutes(30)))
struct FailoverTests {
    /// CONNACK codes "server unavailable" and "bad user name or password" (3.1.1, 3.2.2.3).
    private static let unavailable = ("20 02 00 03" as Hex).bytes
    private static let unknown = ("20 02 00 04" as Hex).bytes

    private func client(
        _ scripts: [ScriptedByteStream],
        clock: ManualClock = ManualClock(),
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted(scripts, clock: clock) {
            $0.reconnection = .never
            $0.failover.hosts = ["b", "c:1"]
            change(&$0)
        }
    }

    @Test("A server that is not available, and one that hangs up, give way to the next")
    func nextHost() async throws {
        let busy = ScriptedByteStream(.expect(Packet.connect), .reply(Self.unavailable))
        let broken = ScriptedByteStream(.expect(Packet.connect), .reset)
        let open = ScriptedByteStream.accepted()
        let (transport, provider) = try client([busy, broken, open])
        try await provider.request(.connect)
        for script in [busy, broken, open] { #expect(script.failures == []) }
        #expect(open.isComplete)
        await transport.shutdown()
    }

    @Test("A server that does not answer in time gives way to the next, which has its own time")
    func silentHost() async throws {
        let clock = ManualClock()
        let disconnect = ("E0 00" as Hex).bytes
        let silent = ScriptedByteStream(.expect(Packet.connect), .expect(disconnect))
        let slow = ScriptedByteStream(.expect(Packet.connect), .expect(disconnect))
        let open = ScriptedByteStream.accepted()
        let (transport, provider) = try client([silent, slow, open], clock: clock)
        let connecting = Task { try await provider.request(.connect) }
        try await waitUntil { silent.hasReached(2) }
        clock.advance(by: .milliseconds(9_999))
        await untilQuiet()
        #expect(!silent.isComplete && !slow.hasReached(2))
        clock.advance(by: .milliseconds(1))
        try await waitUntil { slow.hasReached(2) }
        #expect(silent.isComplete)
        // The second host gets its full time.
        clock.advance(by: .milliseconds(9_999))
        await untilQuiet()
        #expect(!slow.isComplete && !open.hasReached(2))
        clock.advance(by: .milliseconds(1))
        _ = try await connecting.value
        #expect(slow.isComplete && open.isComplete)
        await transport.shutdown()
    }

    @Test("A server that does not know the user is the last that is asked")
    func credentials() async throws {
        let strict = ScriptedByteStream(.expect(Packet.connect), .reply(Self.unknown))
        let other = ScriptedByteStream.accepted()
        let (transport, provider) = try client([strict, other])
        await expectError(.unauthorized) { try await provider.request(.connect) }
        #expect(!other.hasReached(2))
        await transport.shutdown()
    }

    @Test(
        "A server that lacks the version is told of at once, and another host is tried",
        arguments: [
            (MQTTConfiguration.Version.v5, "20 02 00 01" as Hex), (.v3_1_1, "20 03 00 84 00"),
            (.v3_1_1, "20 02 00 01"), (.v5, "20 03 00 84 00"),
        ]
    )
    func version(version: MQTTConfiguration.Version, answer: Hex) async throws {
        let connect = ScriptedByteStream.Step.skip(version == .v5 ? 16 : 15)
        func old() -> ScriptedByteStream {
            ScriptedByteStream(connect, .reply(answer.bytes), .finish)
        }
        let accepting = (version == .v5 ? "20 03 00 00 00" : "20 02 00 00") as Hex
        let open = ScriptedByteStream(connect, .reply(accepting.bytes))
        let (transport, provider) = try scripted([old(), open], version: version) {
            bare(&$0)
            $0.failover.hosts = ["b"]
        }
        try await provider.request(.connect)
        #expect(open.isComplete)
        await transport.shutdown()

        // Alone: the default policy makes no other attempt.
        let (_, single) = try scripted([old()], version: version) { bare(&$0) }
        let error = await expectError(.unsupported) { try await single.request(.connect) }
        #expect(error?.isRetryable == false && error?.message.contains("set version") == true)
        #expect(error?.mqttReason?.code == .unsupportedProtocolVersion)
    }

    @Test("When no host accepts the error names them all")
    func allFail() async throws {
        let busy = ScriptedByteStream(.expect(Packet.connect), .reply(Self.unavailable))
        let (_, provider) = try client([busy])
        let error = await expectError(.connectionRefused) { try await provider.request(.connect) }
        let failure = try #require(error?.underlying as? FailoverFailure)
        #expect(failure.attempts.map(\.host) == ["script:1883", "b:1883", "c:1"])
        #expect(error?.message.contains("c:1: ") == true)
    }

    @Test("A host that cannot be, and a proxy that cannot be, are refused with the configuration")
    func refusals() {
        for change in [
            { $0.failover.hosts = ["mqtt://b"] }, { $0.proxy = ProxyOptions(host: "p", port: 0) },
        ] as [(inout MQTTConfiguration) -> Void] {
            let error = #expect(throws: WaybillError.self) {
                try MQTTTransport(url: "mqtt://a") { change(&$0) }
            }
            #expect(error?.code == .invalidEntry)
        }
    }

    private static let proxy = ProxyOptions(
        host: "proxy",
        port: 3_128,
        userName: "ada",
        password: "lovelace"
    )
    private static let head = """
        CONNECT script:1883 HTTP/1.1\r
        Host: script:1883\r
        Proxy-Authorization: Basic YWRhOmxvdmVsYWNl\r
        \r

        """

    @Test("Through a proxy: first its CONNECT, then MQTT's")
    func proxied() async throws {
        let script = ScriptedByteStream(
            .expect(Self.head),
            .reply("HTTP/1.1 200 OK\r\n\r\n"),
            .expect(Packet.connect),
            .reply(Packet.connack)
        )
        let (transport, provider) = try client([script]) { $0.proxy = Self.proxy }
        try await provider.request(.connect)
        #expect(script.isComplete)
        await transport.shutdown()
    }

    @Test("A proxy that refuses the credentials is final; one that cannot reach a host is not")
    func refusedByProxy() async throws {
        let strict = ScriptedByteStream(
            .expect(Self.head),
            .reply("HTTP/1.1 407 Who\r\nContent-Length: 0\r\n\r\n")
        )
        let other = ScriptedByteStream(.skip(1))
        let (_, provider) = try client([strict, other]) { $0.proxy = Self.proxy }
        let error = await expectError(.unauthorized) { try await provider.request(.connect) }
        let refusal = try #require(error?.underlying as? HTTPRefusal)
        #expect(refusal.status == 407 && refusal.isFromProxy)
        #expect(error.map { "\($0)" }?.contains("lovelace") == false)
        #expect(!other.hasReached(2))

        let unreachable = ScriptedByteStream(
            .expect(Self.head),
            .reply("HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n")
        )
        let open = ScriptedByteStream(
            .skip(Self.head.utf8.count - 2 * "script".count + 2 * "b".count),
            .reply("HTTP/1.1 200 OK\r\n\r\n"),
            .expect(Packet.connect),
            .reply(Packet.connack)
        )
        let (patient, patientProvider) = try client([unreachable, open]) { $0.proxy = Self.proxy }
        try await patientProvider.request(.connect)
        #expect(open.isComplete)
        await patient.shutdown()
    }
}
