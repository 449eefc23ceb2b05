import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// The last packet to the server (MQTT 5, 3.14).
@Suite("MQTT transport: the last packet", .inSimulation, .timeLimit(.minutes(30)))
struct FarewellTests {
    /// CONNECT of MQTT 5: client identifier `c`, clean start, keep alive 60, session expiry 3600, receive maximum
    /// 1,024, packets up to 1 MiB, topic alias maximum 16.
    private static let connect =
        ("10 1E 0004 4D515454 05 02 003C 10 11 00000E10 21 0400 27 00100000 22 0010 0001 63" as Hex)
        .bytes

    private func provider(
        _ script: ScriptedByteStream,
        version: MQTTConfiguration.Version = .v5,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) throws -> Provider<MQTTEntry> {
        let (_, provider) = try scripted([script], version: version) {
            $0.reconnection = .never
            $0.session.cleanStart = true
            $0.session.expiry = .seconds(3_600)
            $0.limits.receiveMaximum = 1_024
            change(&$0)
        }
        return provider
    }

    private func goodbye(
        _ command: EntryCommand,
        headers: Headers = [:]
    ) -> MQTTEntry {
        .command(command, headers: headers)
    }

    /// The command, and the packet that it leads to.
    private struct Row: Sendable {
        let command: EntryCommand
        let packet: Hex
        var headers: Headers = [:]
    }

    private static let rows = [
        Row(command: .disconnect, packet: "E0 00"),
        Row(command: .disconnect(.publishesWill), packet: "E0 01 04"),
        Row(command: .disconnect(.reasonCode(0x83)), packet: "E0 01 83"),
        Row(
            command: .disconnect(.reasonCode(.administrativeAction)),
            packet: "E0 01 98"
        ),
        Row(command: .disconnect(.publishesWill, .reasonCode(4)), packet: "E0 01 04"),
        Row(
            command: .disconnect(.sessionExpiry(.zero)),
            packet: "E0 07 00 05 11 00000000"
        ),
        Row(
            command: .disconnect(.sessionExpiry(.seconds(1 << 40))),
            packet: "E0 07 00 05 11 FFFFFFFF"
        ),
        Row(
            command: .disconnect(
                .reasonCode(0x80),
                .reason("r"),
                .sessionExpiry(.seconds(1))
            ),
            packet: "E0 12 80 10 1F 0001 72 11 00000001 26 0001 6B 0001 76",
            headers: ["k": "v"]
        ),
    ]

    @Test("Reason, words, session expiry and user properties, as asked for", arguments: rows)
    private func bytes(row: Row) async throws {
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(row.packet.bytes)
        )
        let provider = try provider(script)
        try await provider.request(.connect)
        try await provider.request(goodbye(row.command, headers: row.headers))
        #expect(script.failures == [])
        #expect(script.isComplete)
    }

    @Test("What is for people is left out where the server takes no packet that long")
    func terse() async throws {
        let script = ScriptedByteStream(
            .expect(Self.connect),
            // The server accepts packets of up to 16 bytes.
            .reply(("20 08 00 00 05 27 00000010" as Hex).bytes),
            .expect(("E0 07 80 05 11 00000001" as Hex).bytes)
        )
        let provider = try provider(script)
        try await provider.request(.connect)
        let command = EntryCommand.disconnect(
            .reasonCode(0x80),
            .reason("rather long"),
            .sessionExpiry(.seconds(1))
        )
        try await provider.request(goodbye(command, headers: ["k": "v"]))
        #expect(script.failures == [])
        #expect(script.isComplete)
    }

    @Test(
        "What a client cannot say is refused, and the connection stays",
        arguments: [
            (EntryCommand.disconnect(.reasonCode(0x89)), WaybillError.Code.invalidEntry),
            (.disconnect(.reasonCode(0x01)), .invalidEntry),
            (.disconnect(.publishesWill, .reasonCode(0x80)), .invalidEntry),
            (.disconnect(.reason("\u{0}")), .invalidEntry),
            (
                .disconnect(.reason(String(repeating: "r", count: 65_536))),
                .invalidEntry
            ),
        ]
    )
    func refused(command: EntryCommand, code: WaybillError.Code) async throws {
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("E0 00" as Hex).bytes)
        )
        let provider = try provider(script)
        try await provider.request(.connect)
        await expectError(code) { try await provider.request(goodbye(command)) }
        #expect("\(provider.states.current)" == "connected")
        try await provider.request(.disconnect)
        #expect(script.failures == [])
        #expect(script.isComplete)
    }

    @Test("A session without an expiry gets none at its end (3.14.2.2.2)")
    func noExpiry() async throws {
        let provider = try provider(ScriptedByteStream()) { $0.session.expiry = nil }
        let command = EntryCommand.disconnect(.sessionExpiry(.seconds(1)))
        await expectError(.invalidEntry) { try await provider.request(goodbye(command)) }
        try await provider.request(goodbye(.disconnect(.sessionExpiry(.zero))))
    }

    @Test(
        "3.1.1 says nothing but goodbye: the rest is refused",
        arguments: [
            EntryCommand.disconnect(.publishesWill), .disconnect(.reasonCode(0)),
            .disconnect(.reason("r")), .disconnect(.sessionExpiry(.zero)),
        ]
    )
    func version3(command: EntryCommand) async throws {
        let provider = try provider(ScriptedByteStream(), version: .v3_1_1)
        await expectError(.unsupported) { try await provider.request(goodbye(command)) }
        await expectError(.unsupported) {
            try await provider.request(goodbye(.disconnect, headers: ["k": "v"]))
        }
        await expectError(.unsupported) {
            try await provider.request(.command(.disconnect, topic: "t"))
        }
    }

    @Test(
        "It is told while the connection is still being resumed, too",
        arguments: [false, true]
    )
    func whileResuming(isDestroyed: Bool) async throws {
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(("20 03 00 00 00" as Hex).bytes),
            // The SUBSCRIBE of a stream that began offline, which gets no answer.
            .skip(11),
            .expect(isDestroyed ? [0xE0, 7, 0, 5, 0x11, 0, 0, 0, 0] : [0xE0, 1, 0x83])
        )
        let (transport, provider) = try scripted([script], version: .v5) {
            $0.reconnection = .never
            $0.session.expiry = .seconds(3_600)
        }
        let messages = try await provider.messages(
            .command(.subscribe(qos: .atMostOnce, .waitsForConnection), topic: "t")
        )
        try await waitUntil { script.hasReached(4) }
        if isDestroyed {
            await transport.destroy()
        } else {
            try await provider.request(goodbye(.disconnect(.reasonCode(0x83))))
        }
        #expect(script.failures == [])
        #expect(script.isComplete)
        withExtendedLifetime(messages) {}
    }

    @Test("A part of a second is a second: zero would end the session")
    func partOfSecond() async throws {
        let script = ScriptedByteStream(
            .expect(Self.connect),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("E0 07 00 05 11 00000001" as Hex).bytes)
        )
        let provider = try provider(script)
        try await provider.request(.connect)
        try await provider.request(
            goodbye(.disconnect(.sessionExpiry(.milliseconds(200))))
        )
        #expect(script.failures == [] && script.isComplete)
    }

    @Test("The will is published when it is asked for, and only then", arguments: [false, true])
    func will(publishesWill: Bool) async throws {
        let fixture = try Fixture()
        let (watching, watcher) = try fixture.provider()
        var iterator = try await watcher.messages(.subscribe("#")).makeAsyncIterator()
        let (_, provider) = try fixture.provider {
            $0.will = Will(topic: "gone", body: Payload("will"))
        }
        try await provider.request(.connect)
        try await provider.request(
            goodbye(.disconnect(options: publishesWill ? [.publishesWill] : []))
        )
        try await watcher.request(.send("after", to: "after"))
        let first = try await iterator.next()?.topic
        #expect(first == (publishesWill ? "gone" : "after"))
        await fixture.end(watching)
    }
}
