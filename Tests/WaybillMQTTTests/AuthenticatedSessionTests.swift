import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// Sessions that outlive their connections, with and without an authenticator.
@Suite("MQTT transport: sessions and authentication", .inSimulation, .timeLimit(.minutes(30)))
struct AuthenticatedSessionTests {
    private static let accepted = ("20 07 00 00 04 15 0001 6D" as Hex).bytes

    @Test("A call that waits for its exchange ends when the server has lost the session")
    func lostExchange() async throws {
        let clock = ManualClock()
        let first = ScriptedByteStream(
            .skip(25),
            .reply(Self.accepted),
            .skip(11),
            .reply(("90 04 0001 00 02" as Hex).bytes),
            .reply(("34 06 0001 74 0009 00" as Hex).bytes),
            .expect(("50 02 0009" as Hex).bytes),
            .reset
        )
        let second = ScriptedByteStream(
            .skip(25),
            .reply(Self.accepted),
            .skip(11),
            .reply(("90 04 0001 00 02" as Hex).bytes),
            .skip(1)
        )
        let (transport, _) = try scripted([first, second], version: .v5, clock: clock) {
            bare(&$0)
            $0.session.expiry = .seconds(1_000)
            $0.authenticator = TestAuthenticator()
        }
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(
            AnyEntry.subscribe(topic: "t", qos: .exactlyOnce, .manualAcknowledgement)
        )
        var iterator = messages.makeAsyncIterator()
        let id = try #require(try await iterator.next()?.id)
        let call = Task {
            try await provider.request(AnyEntry(command: .ack(id, .awaitsCompletion)))
        }
        try await waitUntil(moving: { clock.advance(by: .milliseconds(100)) }) {
            second.hasReached(4)
        }
        await expectError(.connectionLost) { _ = try await call.value }
        await transport.shutdown()
    }

    /// How an attempt ends whose CONNECT has begun a session at the server.
    enum End: CaseIterable {
        case noAnswer, afterAuth, whileVerifying
    }

    @Test(
        "A session that such an attempt may have begun: subscribed again",
        arguments: End.allCases
    )
    func sessionInDoubt(end: End) async throws {
        let clock = ManualClock()
        func connack(_ present: UInt8) -> [UInt8] {
            [0x20, 0x07, present] + ("00 04 15 0001 6D" as Hex).bytes
        }
        let first = ScriptedByteStream(
            .skip(25),
            .reply(connack(0)),
            .skip(11),
            .reply(("90 04 0001 00 01" as Hex).bytes),
            .skip(6),
            .reset
        )
        let cut =
            switch end {
            case .noAnswer: ScriptedByteStream(.skip(25), .reset)
            case .afterAuth:
                ScriptedByteStream(
                    .skip(25),
                    .reply(("F0 06 18 04 15 0001 6D" as Hex).bytes),
                    .skip(8),
                    .reset
                )
            case .whileVerifying: ScriptedByteStream(.skip(25), .reply(connack(0)), .skip(2))
            }
        let last = ScriptedByteStream(
            .skip(25),
            .reply(connack(1)),
            .expect(("82 09 0002 02 0B 01 0001 74 01" as Hex).bytes),
            .reply(("90 04 0002 00 01 30 08 0001 74 02 0B 01 78 79" as Hex).bytes)
        )
        let authenticator = TestAuthenticator()
        let (transport, _) = try scripted([first, cut, last], version: .v5, clock: clock) {
            bare(&$0)
            $0.session.cleanStart = false
            $0.session.expiry = .seconds(1_000)
            $0.authenticator = authenticator
        }
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(.subscribe(topic: "t", qos: .atLeastOnce))
        if end == .whileVerifying {
            let isFirst = Locked(true)
            authenticator.change {
                $0.finish = { _ in
                    let hangs = isFirst.withLock { isFirst in
                        defer { isFirst = false }
                        return isFirst
                    }
                    if hangs { try await Task.sleep(for: .seconds(3_600)) }
                }
            }
        }
        try await provider.request(.send(topic: "x", body: .none))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(100)) }) {
            last.isComplete || last.failures != []
        }
        #expect(last.failures == [])
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.text == "xy")
        await transport.shutdown()
    }
}
