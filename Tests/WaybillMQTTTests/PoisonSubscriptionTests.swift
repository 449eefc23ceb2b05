import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// A filter that the server answers by ending the connection, byte by byte: the bad one is `a`, the good one `b`.
@Suite("MQTT transport: a poison subscription", .inSimulation, .timeLimit(.minutes(30)))
struct PoisonSubscriptionTests {
    private let clock = ManualClock()

    /// SUBSCRIBE to one filter with QoS 1; in MQTT 5 with the number of its subscription.
    private static func subscribe(
        _ filter: Character,
        _ identifier: UInt8,
        number: UInt8? = nil
    ) -> [UInt8] {
        var rest: [UInt8] = [0, identifier]
        if let number { rest += [2, 0x0B, number] }
        rest += [0, 1] + Array(String(filter).utf8) + [1]
        return [0x82, UInt8(rest.count)] + rest
    }

    private static func suback(
        _ identifier: UInt8,
        _ version: MQTTConfiguration.Version = .v3_1_1
    ) -> ScriptedByteStream.Step {
        .reply(version == .v5 ? [0x90, 4, 0, identifier, 0, 1] : [0x90, 3, 0, identifier, 1])
    }

    private static func accepted5(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
        let connect = ("10 0E 0004 4D515454 05 02 003C 00 0001 63" as Hex).bytes
        return ScriptedByteStream(steps: [.expect(connect), .reply([0x20, 3, 0, 0, 0])] + steps)
    }

    /// Moves the clock until all scripts have ended, or one has failed.
    private func play(_ scripts: [ScriptedByteStream]) async throws {
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            scripts.allSatisfy(\.isComplete) || scripts.contains { $0.failures != [] }
        }
        await untilQuiet()
        #expect(scripts.map(\.failures) == scripts.map { _ in [] })
    }

    @Test("Found by five connections and ended; the other one lives")
    func restored() async throws {
        let first = ScriptedByteStream.accepted(
            .expect(Self.subscribe("a", 1)),
            Self.suback(1),
            .expect(Self.subscribe("b", 2)),
            Self.suback(2),
            .expect([0x30, 3, 0, 1, 0x74]),
            .reset
        )
        let together = [3, 5, 7].map { (identifier: UInt8) in
            ScriptedByteStream.accepted(
                .expect(Self.subscribe("a", identifier) + Self.subscribe("b", identifier + 1)),
                .finish
            )
        }
        let scripts =
            [first] + together + [
                // One at a time, and the suspect last.
                .accepted(.expect(Self.subscribe("a", 9)), .finish),
                .accepted(
                    .expect(Self.subscribe("b", 10)),
                    Self.suback(10),
                    .expect(Self.subscribe("a", 11)),
                    .finish
                ),
                .accepted(.expect(Self.subscribe("b", 12)), Self.suback(12)),
            ]
        let (transport, provider) = try scripted(scripts, clock: clock)
        let bad = try await provider.messages(.subscribe("a", qos: .atLeastOnce))
        let good = try await provider.messages(.subscribe("b", qos: .atLeastOnce))
        try await provider.request(.send(""))
        try await play(scripts)
        let error = await expectError(.rejected) { for try await _ in bad {} }
        #expect(error?.topic == "a" && error?.isRetryable == false)
        #expect(transport.states.current.isConnected)
        withExtendedLifetime(good) {}
        await transport.shutdown()
    }

    @Test(
        "A reason that can only be about a filter: it is found alone at once",
        arguments: [0x8F, 0x9E, 0xA1, 0xA2, 0x87] as [UInt8]
    )
    func named(_ code: UInt8) async throws {
        let end: [ScriptedByteStream.Step] = [.reply([0xE0, 1, code]), .finish]
        let first = Self.accepted5(
            .expect(Self.subscribe("a", 1, number: 1)),
            Self.suback(1, .v5),
            .expect(Self.subscribe("b", 2, number: 2)),
            Self.suback(2, .v5),
            .expect([0x30, 4, 0, 1, 0x74, 0]),
            .reset
        )
        let scripts = [
            first,
            Self.accepted5(
                .expect(Self.subscribe("a", 3, number: 1) + Self.subscribe("b", 4, number: 2)),
                end[0],
                end[1]
            ),
            Self.accepted5(.expect(Self.subscribe("a", 5, number: 1)), end[0], end[1]),
            Self.accepted5(.expect(Self.subscribe("b", 6, number: 2)), Self.suback(6, .v5)),
        ]
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock, bare)
        let bad = try await provider.messages(.subscribe("a", qos: .atLeastOnce))
        let good = try await provider.messages(.subscribe("b", qos: .atLeastOnce))
        try await provider.request(.send(""))
        try await play(scripts)
        let error = await expectError(.rejected) { for try await _ in bad {} }
        #expect(error?.topic == "a" && error?.mqttReason?.code.rawValue == code)
        #expect(transport.states.current.isConnected)
        withExtendedLifetime(good) {}
        await transport.shutdown()
    }

    @Test(
        "The first SUBSCRIBE to a filter that the server answers so is refused; the others live",
        arguments: [(0x8F, .rejected), (0x9E, .rejected), (0x87, .unauthorized)]
            as [(UInt8, WaybillError.Code)]
    )
    func first(_ reason: UInt8, _ code: WaybillError.Code) async throws {
        let scripts = [
            Self.accepted5(
                .expect(Self.subscribe("b", 1, number: 1)),
                Self.suback(1, .v5),
                .expect(Self.subscribe("a", 2, number: 2)),
                .reply([0xE0, 1, reason]),
                .finish
            ),
            Self.accepted5(.expect(Self.subscribe("b", 3, number: 1)), Self.suback(3, .v5)),
        ]
        let (transport, provider) = try scripted(scripts, version: .v5, clock: clock, bare)
        let good = try await provider.messages(.subscribe("b", qos: .atLeastOnce))
        let error = await expectError(code) {
            try await provider.messages(.subscribe("a", qos: .atLeastOnce))
        }
        #expect(error?.topic == "a" && error?.mqttReason?.code.rawValue == reason)
        try await play(scripts)
        #expect(transport.states.current.isConnected)
        withExtendedLifetime(good) {}
        await transport.shutdown()
    }
}
