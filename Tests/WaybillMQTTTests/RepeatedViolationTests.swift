import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireTestSupport

/// A server that keeps a packet which breaks the protocol, and sends it on each connection.
@Suite("MQTT transport: a violation that comes again", .inSimulation, .timeLimit(.minutes(30)))
struct RepeatedViolationTests {
    private let clock = ManualClock()

    /// PUBLISH of QoS 1 to `+`, which is no topic.
    private static func broken(_ identifier: UInt8, isDuplicate: Bool) -> [UInt8] {
        [isDuplicate ? 0x3A : 0x32, 6, 0, 1, 0x2B, 0, identifier, 0x78]
    }

    @Test("The same packet on three connections: no other follows, and the error says why")
    func same() async throws {
        let scripts: [ScriptedByteStream] = [
            .accepted(.new, .reply(Self.broken(1, isDuplicate: false))),
            .accepted(.present, .reply(Self.broken(1, isDuplicate: true))),
            .accepted(.present, .reply(Self.broken(1, isDuplicate: true))),
        ]
        let (transport, provider) = try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
        }
        try await provider.connect()
        let end = try await end(of: transport)
        #expect(end?.code == .protocolViolation)
        #expect(end?.isRetryable == false)
        #expect(
            end?.message
                == "the server broke the protocol: a topic name that is empty or has a wildcard; the same came on 3 connections in a row"
        )
        #expect(scripts.map(\.failures) == [[], [], []])
        await transport.shutdown()
    }

    @Test("Other packets, and a loss in between: the transport connects again")
    func different() async throws {
        let scripts: [ScriptedByteStream] = [
            .accepted(.new, .reply(Self.broken(1, isDuplicate: false))),
            .accepted(.present, .reply(Self.broken(1, isDuplicate: true))),
            .accepted(.present, .reply(Self.broken(2, isDuplicate: false))),
            .accepted(.present, .reply(Self.broken(2, isDuplicate: true))),
            .accepted(.present, .finish),
            .accepted(.present),
        ]
        let (transport, provider) = try scripted(scripts, clock: clock) {
            $0.session.cleanStart = false
        }
        try await provider.connect()
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            if case .disconnected = transport.states.current { return true }
            return scripts[5].isComplete || scripts.contains { $0.failures != [] }
        }
        #expect(scripts.map(\.failures) == scripts.map { _ in [] })
        #expect(scripts[5].isComplete, "the transport has given up")
        await transport.shutdown()
    }

    /// Moves the clock until the transport has given up.
    private func end(of transport: MQTTTransport) async throws -> WaybillError? {
        var cause: WaybillError?
        try await waitUntil(moving: { clock.advance(by: .milliseconds(50)) }) {
            guard case .disconnected(let error) = transport.states.current else { return false }
            cause = error
            return true
        }
        return cause
    }
}
