import MQTTWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// Reasons of PUBACK and PUBREC, and the end of a QoS 2 exchange (MQTT 5, 3.4, 3.5 and 4.3.3).
@Suite("MQTT transport: answers to received messages", .inSimulation, .timeLimit(.minutes(30)))
struct AcknowledgementPropertyTests {
    private static let entry = AnyEntry.subscribe(
        topic: "t",
        qos: .exactlyOnce,
        .manualAcknowledgement
    )
    private static let opening: [ScriptedByteStream.Step] = [
        .skip(16), .reply(("20 03 00 00 00" as Hex).bytes),
        .expect(("82 09 0001 02 0B 01 0001 74 02" as Hex).bytes),
        .reply(("90 04 0001 00 02" as Hex).bytes),
    ]

    /// A message that waits for its acknowledgement, with the rest of the script.
    private func waiting(
        _ publish: Hex,
        _ steps: [ScriptedByteStream.Step],
        then others: [ScriptedByteStream] = [],
        clock: ManualClock = ManualClock(),
        _ change: (inout MQTTConfiguration) -> Void = { $0.reconnection = .never }
    ) async throws -> Waiting {
        let script = ScriptedByteStream(steps: Self.opening + [.reply(publish.bytes)] + steps)
        let (transport, _) = try scripted([script] + others, version: .v5, clock: clock) {
            bare(&$0)
            change(&$0)
        }
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(Self.entry)
        var iterator = messages.makeAsyncIterator()
        let id = try #require(try await iterator.next()?.id)
        return Waiting(
            script: script,
            transport: transport,
            provider: provider,
            messages: messages,
            id: id
        )
    }

    /// A connection with a message that waits for its acknowledgement.
    private struct Waiting: Sendable {
        let script: ScriptedByteStream
        let transport: MQTTTransport
        let provider: Provider<AnyEntry>
        /// Kept until the end, because its end unsubscribes.
        let messages: Messages<Message>
        let id: Message.ID

        func perform(_ command: EntryCommand, _ headers: Headers = [:]) async throws {
            try await provider.request(AnyEntry(command: command, headers: headers))
        }

        /// Waits until the script is over, and ends.
        func end() async throws {
            try await waitUntil { script.isComplete || script.failures != [] }
            #expect(script.failures == [])
            await transport.shutdown()
            messages.cancel()
        }
    }

    private static let one: Hex = "32 07 0001 74 0005 00 78"
    private static let two: Hex = "34 07 0001 74 0006 00 78"

    static let rows: [(Hex, Bool, [AckOption], Headers, Hex)] = [
        (one, true, [], [:], "40 02 0005"),
        (one, true, [.reason("r")], [:], "40 08 0005 00 04 1F 0001 72"),
        (one, true, [], ["k": "v"], "40 0B 0005 00 07 26 0001 6B 0001 76"),
        (one, false, [], [:], "40 03 0005 80"),
        (one, false, [.reasonCode(.quotaExceeded)], [:], "40 03 0005 97"),
        (
            one, false, [.reasonCode(0x99), .reason("r")], ["k": "v"],
            "40 0F 0005 99 0B 1F 0001 72 26 0001 6B 0001 76"
        ),
        (two, true, [.reason("r")], [:], "50 08 0006 00 04 1F 0001 72"),
        (two, false, [.reasonCode(0x83)], [:], "50 03 0006 83"),
    ]

    @Test("The bytes of PUBACK and PUBREC", arguments: rows)
    func answers(
        _ publish: Hex,
        _ isAccepted: Bool,
        _ options: [AckOption],
        _ headers: Headers,
        _ packet: Hex
    ) async throws {
        let waiting = try await waiting(publish, [.expect(packet.bytes)])
        try await waiting.perform(
            isAccepted ? .ack(waiting.id, options: options) : .nack(waiting.id, options: options),
            headers
        )
        try await waiting.end()
    }

    /// The answers of two listeners in order, and the acknowledgement: refused, with the options, or plainly accepted.
    static let severalRows: [([(isAccepted: Bool, [AckOption])], Hex)] = [
        (
            [(false, [.reasonCode(0x97), .reason("q")]), (false, [.reasonCode(0x83)])],
            "40 08 0005 97 04 1F 0001 71"
        ),
        (
            [(false, [.reasonCode(0x83)]), (false, [.reasonCode(0x97), .reason("q")])],
            "40 08 0005 97 04 1F 0001 71"
        ),
        (
            [(false, [.reasonCode(0x97), .reason("q")]), (true, [])],
            "40 08 0005 97 04 1F 0001 71"
        ),
        (
            [(true, [.reason("r")]), (true, [])],
            "40 08 0005 00 04 1F 0001 72"
        ),
        ([(true, [.reason("r")]), (false, [])], "40 03 0005 80"),
        ([(false, []), (true, [.reason("r")])], "40 03 0005 80"),
        ([(true, [.reason("r")]), (true, [.reason("s")])], "40 08 0005 00 04 1F 0001 73"),
        ([(true, []), (true, [])], "40 02 0005"),
    ]

    @Test("Of two listeners the answer with the highest reason code counts", arguments: severalRows)
    func several(
        _ answers: [(isAccepted: Bool, [AckOption])],
        _ packet: Hex
    ) async throws {
        let script = ScriptedByteStream(
            steps: Self.opening + [
                .skip(11), .reply(("90 04 0002 00 02" as Hex).bytes), .reply(Self.one.bytes),
                .expect(packet.bytes),
            ]
        )
        let (transport, _) = try scripted([script], version: .v5) {
            bare(&$0)
            $0.reconnection = .never
        }
        let provider = Provider<AnyEntry>(transport: transport)
        let streams = [
            try await provider.messages(Self.entry), try await provider.messages(Self.entry),
        ]
        for (stream, (isAccepted, options)) in zip(streams, answers) {
            var iterator = stream.makeAsyncIterator()
            let id = try #require(try await iterator.next()?.id)
            try await provider.request(
                AnyEntry(
                    command: isAccepted
                        ? .ack(id, options: options) : .nack(id, options: options)
                )
            )
        }
        try await waitUntil { script.isComplete || script.failures != [] }
        #expect(script.failures == [])
        await transport.shutdown()
        for stream in streams { stream.cancel() }
    }

    @Test("The texts of an answer that only the next connection sends are kept")
    func keptTexts() async throws {
        let marker = ("30 05 0001 74 00 7A" as Hex).bytes
        let first = ScriptedByteStream(
            steps: [.skip(21)] + Self.opening.dropFirst() + [
                .reply(Self.two.bytes), .expect(marker), .reset,
            ]
        )
        let second = ScriptedByteStream(
            .skip(21),
            .reply(("20 03 01 00 00" as Hex).bytes),
            .expect(marker),
            .reply(("3C 07 0001 74 0006 00 78" as Hex).bytes),
            .expect(("50 11 0006 00 0D 1F 0004 6C617465 26 0001 6B 0000" as Hex).bytes)
        )
        let (transport, _) = try scripted([first, second], version: .v5) {
            bare(&$0)
            $0.session.expiry = .seconds(600)
        }
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(Self.entry)
        var iterator = messages.makeAsyncIterator()
        let id = try #require(try await iterator.next()?.id)
        let send = AnyEntry(topic: "t", command: .send, body: .bytes([0x7A]))
        try await provider.request(send)
        try await waitUntil { second.hasReached(3) }
        // The server has not repeated the message yet.
        var ack = AnyEntry(command: .ack(id, .reason("late")))
        ack.headers = ["k": ""]
        try await provider.request(ack)
        try await provider.request(send)
        try await waitUntil { second.isComplete || second.failures != [] }
        #expect(second.failures == [])
        await transport.shutdown()
        messages.cancel()
    }

    @Test("Kept texts have a limit together, and end with their exchange")
    func keptTextsLimit() {
        var kept = MQTTCarriedExplanations()
        var text = MQTTProperties()
        text.reasonString = String(repeating: "r", count: 1 << 15)
        kept.keep(text, for: 1)
        kept.keep(text, for: 1)
        #expect(kept.byteCount == 32_771)
        kept.keep(text, for: 2)
        #expect(kept.take(2).isEmpty, "above the limit")
        #expect(kept.take(1) == text)
        #expect(kept.take(1).isEmpty && kept.byteCount == 0)
        kept.keep(MQTTProperties(), for: 3)
        #expect(kept.byteCount == 0)
    }

    @Test("An acknowledgement of QoS 2 completes with PUBCOMP")
    func completes() async throws {
        let waiting = try await waiting(
            Self.two,
            [
                .expect(("50 02 0006" as Hex).bytes), .reply(("62 02 0006" as Hex).bytes),
                .expect(("70 02 0006" as Hex).bytes),
            ]
        )
        try await waiting.perform(.ack(waiting.id, .awaitsCompletion))
        try await waiting.end()
    }

    @Test("Without PUBREL the wait ends at the timeout of acknowledgements")
    func timesOut() async throws {
        let clock = ManualClock()
        let waiting = try await waiting(
            Self.two,
            [.expect(("50 02 0006" as Hex).bytes)],
            clock: clock
        ) {
            $0.reconnection = .never
            $0.keepAlive.interval = .zero
        }
        let isOver = Locked(false)
        let call = Task {
            defer { isOver.withLock { $0 = true } }
            try await waiting.perform(.ack(waiting.id, .awaitsCompletion))
        }
        try await waitUntil { waiting.script.isComplete }
        clock.advance(by: .seconds(29))
        await untilQuiet()
        #expect(!isOver.withLock { $0 })
        try await waitUntil(moving: { clock.advance(by: .seconds(1)) }) { isOver.withLock { $0 } }
        let error = await #expect(throws: WaybillError.self) { try await call.value }
        #expect(error?.code == .timedOut)
        try await waiting.end()
    }

    @Test("The wait goes on over the next connection, unless the server has lost the session")
    func nextConnection() async throws {
        for isPresent in [true, false] {
            let connack: Hex = isPresent ? "20 03 01 00 00" : "20 03 00 00 00"
            let rest: [ScriptedByteStream.Step] =
                isPresent
                ? [
                    .reply(("62 02 0006" as Hex).bytes), .expect(("70 02 0006" as Hex).bytes),
                ] : [.expect(("82 09 0002 02 0B 01 0001 74 02" as Hex).bytes)]
            // With the session expiry, CONNECT is five bytes longer.
            let second = ScriptedByteStream(steps: [.skip(21), .reply(connack.bytes)] + rest)
            let first = ScriptedByteStream(
                steps: [.skip(21)] + Self.opening.dropFirst() + [
                    .reply(Self.two.bytes), .expect(("50 02 0006" as Hex).bytes), .reset,
                ]
            )
            let (transport, _) = try scripted([first, second], version: .v5) {
                bare(&$0)
                $0.session.expiry = .seconds(600)
            }
            let provider = Provider<AnyEntry>(transport: transport)
            let messages = try await provider.messages(Self.entry)
            var iterator = messages.makeAsyncIterator()
            let id = try #require(try await iterator.next()?.id)
            let ack = AnyEntry(command: .ack(id, .awaitsCompletion))
            if isPresent {
                try await provider.request(ack)
            } else {
                await expectError(.connectionLost) { try await provider.request(ack) }
            }
            try await waitUntil { second.isComplete || second.failures != [] }
            #expect(first.failures == [] && second.failures == [])
            await transport.shutdown()
            messages.cancel()
        }
    }

    @Test("Without a connection that follows the wait fails, and a cancelled one ends")
    func noConnection() async throws {
        let lost = try await waiting(
            Self.two,
            [.expect(("50 02 0006" as Hex).bytes), .reset]
        )
        await expectError(.connectionLost) {
            try await lost.perform(.ack(lost.id, .awaitsCompletion))
        }
        try await lost.end()

        let cancelled = try await waiting(Self.two, [.expect(("50 02 0006" as Hex).bytes)])
        let call = Task { try await cancelled.perform(.ack(cancelled.id, .awaitsCompletion)) }
        try await waitUntil { cancelled.script.isComplete || cancelled.script.failures != [] }
        call.cancel()
        await #expect(throws: CancellationError.self) { try await call.value }
        try await cancelled.end()
    }

    @Test("At QoS 1 and for a refusal there is nothing to wait for")
    func atOnce() async throws {
        for (publish, answer) in [(Self.one, "40 03 0005 80" as Hex), (Self.two, "50 03 0006 80")] {
            let waiting = try await waiting(publish, [.expect(answer.bytes)])
            try await waiting.perform(.nack(waiting.id, .awaitsCompletion))
            try await waiting.end()
        }
    }

    @Test("Over a broker, in both versions", arguments: versions)
    func overBroker(version: MQTTConfiguration.Version) async throws {
        let fixture = try Fixture()
        let (transport, provider) = try fixture.provider(version)
        let messages = try await provider.messages(.subscribe("t", .manualAcknowledgement))
        for number in 0..<10 { try await provider.request(.send("\(number)", qos: .exactlyOnce)) }
        for message in try await take(10, messages) {
            let id = try #require(message.id)
            try await provider.request(.command(.ack(id, .awaitsCompletion)))
        }
        #expect(fixture.lines.count("← PUBREC") == 10)
        try await waitUntil { fixture.lines.count("← PUBCOMP") == 10 }
        await fixture.end(transport)
    }
}
