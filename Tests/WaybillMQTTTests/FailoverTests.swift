import Testing
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// Several hosts, and a proxy before them, on a clock that stands still.
@Suite("MQTT transport: hosts and proxies", .timeLimit(.minutes(5))) struct FailoverTests {
    /// CONNECT of MQTT 3.1.1 with client identifier `c`, keep alive 60, clean session.
    private static let connect = ("10 0D 0004 4D515454 04 02 003C 0001 63" as Hex).bytes
    private static let accepted = ("20 02 00 00" as Hex).bytes
    /// CONNACK codes "server unavailable" and "bad user name or password" (3.1.1, 3.2.2.3).
    private static let unavailable = ("20 02 00 03" as Hex).bytes
    private static let unknown = ("20 02 00 04" as Hex).bytes

    private func configuration(
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTConfiguration {
        var configuration = MQTTConfiguration(version: .v3_1_1)
        configuration.reconnection = .never
        configuration.clientIdentifier = "c"
        configuration.failover.hosts = ["b", "c:1"]
        change(&configuration)
        return configuration
    }

    @Test("A server that is not available, and one that hangs up, give way to the next")
    func nextHost() async throws {
        let busy = ScriptedByteStream(.expect(Self.connect), .reply(Self.unavailable))
        let broken = ScriptedByteStream(.expect(Self.connect), .reset)
        let open = ScriptedByteStream(.expect(Self.connect), .reply(Self.accepted))
        let transport = try MQTTTransport(
            scripts: busy,
            broken,
            open,
            configuration: configuration()
        )
        try await Provider<MQTTEntry>(transport: transport).request(.connect)
        for script in [busy, broken, open] { #expect(script.failures == []) }
        #expect(open.isComplete)
        await transport.shutdown()
    }

    @Test("A server that does not answer in time gives way to the next, which has its own time")
    func silentHost() async throws {
        let clock = ManualClock()
        let disconnect = ("E0 00" as Hex).bytes
        let silent = ScriptedByteStream(.expect(Self.connect), .expect(disconnect))
        let slow = ScriptedByteStream(.expect(Self.connect), .expect(disconnect))
        let open = ScriptedByteStream(.expect(Self.connect), .reply(Self.accepted))
        let transport = try MQTTTransport(
            scripts: silent,
            slow,
            open,
            clock: clock,
            configuration: configuration()
        )
        let connecting = Task {
            try await Provider<MQTTEntry>(transport: transport).request(.connect)
        }
        try await waitUntil { silent.hasReached(2) }
        clock.advance(by: .milliseconds(9_999))
        await letOthersRun()
        #expect(!silent.isComplete && !slow.hasReached(2))
        clock.advance(by: .milliseconds(1))
        try await waitUntil { slow.hasReached(2) }
        #expect(silent.isComplete)
        // The second host gets its full time.
        clock.advance(by: .milliseconds(9_999))
        await letOthersRun()
        #expect(!slow.isComplete && !open.hasReached(2))
        clock.advance(by: .milliseconds(1))
        _ = try await connecting.value
        #expect(slow.isComplete && open.isComplete)
        await transport.shutdown()
    }

    @Test("A server that does not know the user is the last that is asked")
    func credentials() async throws {
        let strict = ScriptedByteStream(.expect(Self.connect), .reply(Self.unknown))
        let other = ScriptedByteStream(.expect(Self.connect), .reply(Self.accepted))
        let transport = try MQTTTransport(scripts: strict, other, configuration: configuration())
        await expectError(.unauthorized) {
            try await Provider<MQTTEntry>(transport: transport).request(.connect)
        }
        #expect(!other.hasReached(2))
        await transport.shutdown()
    }

    @Test("When no host accepts the error names them all")
    func allFail() async throws {
        let busy = ScriptedByteStream(.expect(Self.connect), .reply(Self.unavailable))
        let transport = try MQTTTransport(scripts: busy, configuration: configuration())
        let error = await expectError(.connectionRefused) {
            try await Provider<MQTTEntry>(transport: transport).request(.connect)
        }
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
                try MQTTTransport(url: "mqtt://a", configuration: configuration(change))
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
            .expect(Self.connect),
            .reply(Self.accepted)
        )
        let transport = try MQTTTransport(
            scripts: script,
            configuration: configuration { $0.proxy = Self.proxy }
        )
        try await Provider<MQTTEntry>(transport: transport).request(.connect)
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
        let transport = try MQTTTransport(
            scripts: strict,
            other,
            configuration: configuration { $0.proxy = Self.proxy }
        )
        let error = await expectError(.unauthorized) {
            try await Provider<MQTTEntry>(transport: transport).request(.connect)
        }
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
            .expect(Self.connect),
            .reply(Self.accepted)
        )
        let patient = try MQTTTransport(
            scripts: unreachable,
            open,
            configuration: configuration { $0.proxy = Self.proxy }
        )
        try await Provider<MQTTEntry>(transport: patient).request(.connect)
        #expect(open.isComplete)
        await patient.shutdown()
    }
}
