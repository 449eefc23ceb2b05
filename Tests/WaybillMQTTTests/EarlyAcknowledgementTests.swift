import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSession
import WaybillTesting
import WireTestSupport

/// Acknowledgements by the app while a connection is being made.
@Suite(
    "MQTT transport: acknowledgements while a connection is made",
    .inSimulation,
    .timeLimit(.minutes(30))
)
struct EarlyAcknowledgementTests {
    private static func opening(_ qos: UInt8) -> [ScriptedByteStream.Step] {
        [
            .skip(21), .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("82 09 0001 02 0B 01 0001 74" as Hex).bytes + [qos]),
            .reply(("90 04 0001 00" as Hex).bytes + [qos]),
        ]
    }

    /// A message of the app, after which the first connection is lost.
    private static let last: [ScriptedByteStream.Step] = [
        .expect(("30 05 0001 67 00 78" as Hex).bytes), .reset,
    ]

    private func sendLast(_ provider: Provider<AnyEntry>) async throws {
        try await provider.request(.send(topic: "g", body: .bytes([0x78]), qos: .atMostOnce))
    }

    private func provider(
        _ scripts: [ScriptedByteStream],
        clock: ManualClock = ManualClock()
    ) throws -> (MQTTTransport, Provider<AnyEntry>) {
        let (transport, _) = try scripted(scripts, version: .v5, clock: clock) {
            bare(&$0)
            $0.session.expiry = .seconds(86_400)
            $0.session.cleanStart = false
            $0.keepAlive.interval = .zero
        }
        return (transport, Provider(transport: transport))
    }

    private func subscription(_ qos: QoS) -> AnyEntry {
        .subscribe(topic: "t", qos: qos, .manualAcknowledgement)
    }

    @Test("A message that comes before its subscription is restored can be acknowledged at once")
    func whileRestoring() async throws {
        let first = ScriptedByteStream(steps: Self.opening(1) + Self.last)
        let second = ScriptedByteStream(
            .skip(21),
            .reply(("20 03 00 00 00" as Hex).bytes),
            .expect(("82 09 0002 02 0B 01 0001 74 01" as Hex).bytes),
            .reply(("32 07 0001 74 0005 00 78" as Hex).bytes),
            // The server does not answer SUBSCRIBE before it has this.
            .expect(("40 02 0005" as Hex).bytes),
            .reply(("90 04 0002 00 01" as Hex).bytes)
        )
        let (transport, provider) = try provider([first, second])
        let messages = try await provider.messages(subscription(.atLeastOnce))
        let reader = Task {
            for try await message in messages {
                try await provider.request(AnyEntry(command: .ack(try #require(message.id))))
            }
        }
        try await sendLast(provider)
        try await waitUntil { second.isComplete || second.failures != [] }
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
        reader.cancel()
        _ = await reader.result
    }

    /// Holds CONNECT back.
    private struct Holding: Interceptor {
        let entered = Promise<Void>()
        let released = Promise<Void>()

        func adapt(_ request: inout Request, context: InterceptorContext) async throws {
            guard request.command.kind == .connect else { return }
            entered.resolve(.success(()))
            try await released.value()
        }
    }

    @Test("So can one that comes with the first connection, which a send makes")
    func firstConnection() async throws {
        let script = ScriptedByteStream(
            .skip(21),
            .reply(("20 03 01 00 00 34 07 0001 74 0005 00 78" as Hex).bytes),
            // SUBSCRIBE and PUBREC, in any order. The server does not answer SUBSCRIBE before it has both.
            .skip(11 + 4),
            .reply(("90 04 0001 00 02" as Hex).bytes),
            .expect(("30 05 0001 67 00 78" as Hex).bytes)
        )
        let (transport, plain) = try provider([script])
        let holding = Holding()
        let provider = plain.intercepted(holding)
        let sending = Task { try await sendLast(provider) }
        try await holding.entered.value()
        var messages = try await provider.messages(
            .subscribe(topic: "t", qos: .exactlyOnce, .manualAcknowledgement, .waitsForConnection)
        )
        .makeAsyncIterator()
        holding.released.resolve(.success(()))
        let id = try #require(try await messages.next()?.id)
        try await provider.request(AnyEntry(command: .ack(id)))
        try await waitUntil { script.isComplete || script.failures != [] }
        #expect(script.failures == [])
        await transport.shutdown()
        _ = await sending.result
    }

    @Test("At QoS 2 a message that was not acknowledged before a disconnect is delivered again")
    func disconnected() async throws {
        let first = ScriptedByteStream(
            steps: Self.opening(2) + [
                .reply(("34 07 0001 74 0006 00 78" as Hex).bytes), .skip(2), .finish,
            ]
        )
        let second = ScriptedByteStream(
            .skip(21),
            .reply(("20 03 01 00 00" as Hex).bytes),
            .expect(("82 09 0002 02 0B 01 0001 74 02" as Hex).bytes),
            .reply(("90 04 0002 00 02 3C 07 0001 74 0006 00 78" as Hex).bytes),
            .expect(("50 02 0006" as Hex).bytes)
        )
        let (transport, provider) = try provider([first, second])
        var messages = try await provider.messages(subscription(.exactlyOnce)).makeAsyncIterator()
        let early = try #require(try await messages.next()?.id)
        try await provider.request(AnyEntry(command: .disconnect))
        await expectError(.notConnected) {
            try await provider.request(AnyEntry(command: .ack(early)))
        }
        try await provider.request(AnyEntry(command: .connect))
        messages = try await provider.messages(subscription(.exactlyOnce)).makeAsyncIterator()
        let id = try #require(try await messages.next()?.id)
        try await provider.request(AnyEntry(command: .ack(id)))
        try await waitUntil { second.isComplete || second.failures != [] }
        #expect(first.failures == [] && second.failures == [])
        await transport.shutdown()
    }

    @Test("At QoS 2 an acknowledgement without a connection is sent over the next one")
    func betweenConnections() async throws {
        let first = ScriptedByteStream(
            steps: Self.opening(2) + [.reply(("34 07 0001 74 0006 00 78" as Hex).bytes)]
                + Self.last
        )
        // The first reconnection follows without a delay, the next one after the delay of a busy server.
        let busy = ScriptedByteStream(.skip(21), .reply(("20 03 00 89 00" as Hex).bytes))
        let second = ScriptedByteStream(
            .skip(21),
            .reply(("20 03 01 00 00 3C 07 0001 74 0006 00 78" as Hex).bytes),
            .expect(("50 02 0006" as Hex).bytes),
            .reply(("62 02 0006" as Hex).bytes),
            .expect(("70 02 0006" as Hex).bytes)
        )
        let clock = ManualClock()
        let (transport, provider) = try provider([first, busy, second], clock: clock)
        let messages = try await provider.messages(subscription(.exactlyOnce))
        var iterator = messages.makeAsyncIterator()
        let id = try #require(try await iterator.next()?.id)
        try await sendLast(provider)
        try await waitUntil {
            busy.isComplete && "\(transport.states.current)".hasPrefix("waiting")
        }
        let unknown = AnyEntry(command: .ack(Message.ID("9")))
        await expectError(.notConnected) { try await provider.request(unknown) }
        try await provider.request(AnyEntry(command: .ack(id)))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(100)) }) {
            second.isComplete || second.failures != []
        }
        #expect(first.failures == [] && second.failures == [])
        // The acknowledgement may have been sent before the subscriptions are restored.
        try await waitUntil { "\(transport.states.current)".hasPrefix("connected") }
        await expectError(.invalidEntry) {
            try await provider.request(AnyEntry(command: .ack(id)))
        }
        await transport.shutdown()
        messages.cancel()
    }
}
