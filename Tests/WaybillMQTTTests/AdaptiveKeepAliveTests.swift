import Foundation
import MQTTWire
import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

/// Pings whose interval is learned, on a clock that stands still.
@Suite("MQTT transport: adaptive keep alive", .inSimulation, .timeLimit(.minutes(30)))
struct AdaptiveKeepAliveTests {
    private static let ping = ("C0 00" as Hex).bytes
    private static let pong = ("D0 00" as Hex).bytes
    /// CONNECT with client identifier `c`, a clean session, and the keep alive that the server is told: 1,000 seconds.
    private static let connect = ("10 0D 0004 4D515454 04 02 03E8 0001 63" as Hex).bytes

    /// A connection that follows the steps after its CONNACK, which is step 2.
    private static func script(_ steps: ScriptedByteStream.Step...) -> ScriptedByteStream {
        ScriptedByteStream(steps: [.expect(connect), .reply(Packet.connack)] + steps)
    }

    private func transport(
        _ scripts: [ScriptedByteStream],
        _ clock: ManualClock,
        memory: LearnedKeepAlive = LearnedKeepAlive(),
        network: @escaping @Sendable () -> String
    ) throws -> (MQTTTransport, Provider<MQTTEntry>) {
        try scripted(scripts, clock: clock) {
            $0.keepAlive.interval = .seconds(1_000)
            $0.keepAlive.adaptive = AdaptiveKeepAlive(learned: memory, network: network)
        }
    }

    /// Expects that a script reaches a step in the last second of this time.
    private func expect(
        _ script: ScriptedByteStream,
        toReach step: Int,
        after duration: Duration,
        _ clock: ManualClock
    ) async throws {
        clock.advance(by: duration - .seconds(1))
        await untilQuiet()
        #expect(!script.hasReached(step), "not before \(duration)")
        clock.advance(by: .seconds(1))
        try await waitUntil { script.hasReached(step) }
    }

    @Test("The interval grows, shrinks after a loss, and is remembered for its network")
    func learned() async throws {
        let network = Locked("wifi")
        let clock = ManualClock()
        // Answers after 60 seconds of silence, and is gone after 120.
        let first = Self.script(.expect(Self.ping), .reply(Self.pong), .expect(Self.ping), .skip(1))
        // PINGREQ, and then a PUBLISH of 6 bytes.
        let second = Self.script(.expect(Self.ping), .reply(Self.pong), .skip(6), .reset)
        let third = Self.script(.expect(Self.ping), .reply(Self.pong), .skip(1))
        let (transport, provider) = try transport([first, second, third], clock) {
            network.withLock { $0 }
        }
        func longest(_ name: String) -> Duration? {
            transport.learnedKeepAlive.longestSilence(of: name)
        }
        try await provider.request(.connect)
        #expect(longest("wifi") == nil)
        try await expect(first, toReach: 4, after: .seconds(60), clock)
        try await waitUntil { longest("wifi") == .seconds(60) }
        try await expect(first, toReach: 6, after: .seconds(120), clock)
        // The dead peer is noticed after the ping's timeout, much earlier than its keep alive says.
        clock.advance(by: .milliseconds(19_999))
        await untilQuiet()
        #expect("\(transport.states.current)" == "connected")
        clock.advance(by: .milliseconds(1))
        try await waitUntil(moving: {
            if !second.hasReached(2) { clock.advance(by: .milliseconds(10)) }
        }) {
            second.hasReached(3) && "\(transport.states.current)" == "connected"
        }
        // Half-way between 60 and 120.
        try await expect(second, toReach: 4, after: .seconds(90), clock)
        try await waitUntil { longest("wifi") == .seconds(90) }
        // Another network begins anew.
        network.withLock { $0 = "cell" }
        try await provider.request(.send("x"))
        try await waitUntil {
            third.hasReached(3) && "\(transport.states.current)" == "connected"
        }
        clock.advance(by: .seconds(59))
        await untilQuiet()
        #expect(!third.hasReached(4))
        try await waitUntil(moving: { clock.advance(by: .milliseconds(10)) }) {
            longest("cell") == .seconds(60)
        }
        #expect(longest("wifi") == .seconds(90))
        for script in [first, second, third] { #expect(script.failures == []) }

        // What the app has stored continues in another transport.
        let stored = try JSONEncoder().encode(transport.learnedKeepAlive)
        await transport.shutdown()
        let memory = try JSONDecoder().decode(LearnedKeepAlive.self, from: stored)
        #expect(memory.networks == ["wifi", "cell"])
        let next = Self.script(.expect(Self.ping), .skip(1))
        let (other, otherProvider) = try self.transport([next], clock, memory: memory) { "wifi" }
        try await otherProvider.request(.connect)
        try await expect(next, toReach: 4, after: .seconds(105), clock)
        await other.shutdown()
    }

    @Test("A server's own keep alive is the longest interval")
    func bounded() async throws {
        let clock = ManualClock()
        // CONNACK with Server Keep Alive 70.
        let script = ScriptedByteStream(
            .skip(27),
            .reply(("20 06 00 00 03 13 0046" as Hex).bytes),
            .expect(Self.ping),
            .reply(Self.pong),
            .expect(Self.ping),
            .skip(1)
        )
        let (transport, provider) = try scripted([script], version: .v5, clock: clock) {
            $0.keepAlive.interval = .seconds(1_000)
            $0.keepAlive.adaptive = AdaptiveKeepAlive()
        }
        try await provider.request(.connect)
        try await expect(script, toReach: 4, after: .seconds(60), clock)
        try await waitUntil {
            transport.learnedKeepAlive.longestSilence(of: "") == .seconds(60)
        }
        try await expect(script, toReach: 6, after: .seconds(70), clock)
        await transport.shutdown()
    }

    @Test("Without the option pings follow the keep alive alone, and nothing is learned")
    func off() async throws {
        let clock = ManualClock()
        let script = Self.script(.expect(Self.ping), .reply(Self.pong), .skip(1))
        let (transport, provider) = try scripted([script], clock: clock) {
            $0.keepAlive.interval = .seconds(1_000)
        }
        try await provider.request(.connect)
        try await expect(script, toReach: 4, after: .seconds(1_000), clock)
        #expect(transport.learnedKeepAlive == LearnedKeepAlive())
        await transport.shutdown()
    }

    @Test("The last 16 networks are remembered, each once, and names are compared by their bytes")
    func memory() {
        var memory = LearnedKeepAlive()
        var knowledge = MQTTKeepAliveProbe.Knowledge()
        knowledge.proven = 60
        for number in 0..<20 { memory.remember("n\(number)", knowledge) }
        knowledge.proven = 90
        memory.remember("n10", knowledge)
        #expect(memory.networks.count == LearnedKeepAlive.maximumCount)
        #expect(memory.networks.first == "n4" && memory.networks.last == "n10")
        #expect(memory.longestSilence(of: "n10") == .seconds(90))
        #expect(memory.longestSilence(of: "n3") == nil)
        memory.remember("\u{E9}", knowledge)
        #expect(memory.longestSilence(of: "e\u{301}") == nil)
    }
}
