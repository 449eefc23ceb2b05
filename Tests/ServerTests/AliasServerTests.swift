import Testing
import Waybill
import WaybillMQTT
import WireCore

@Suite(
    "Topic aliases at Mosquitto",
    .enabled(
        if: MosquittoServer.isRunning,
        "Mosquitto is not running: Tests/Servers/with --install -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct AliasServerTests {
    /// Adds up the sent PUBLISH packets.
    private final class Tally: WireLogger {
        let byteCount = Locked(0)

        func log(_ record: WireRecord) {
            guard record.kind == .frame, record.direction == .outbound,
                record.text.hasPrefix("PUBLISH")
            else { return }
            byteCount.withLock { $0 += record.byteCount }
        }
    }

    /// Sends 1,000 messages on 50 topics, and returns the bytes of their packets.
    private func bytes(
        at listener: MosquittoServer.Listener,
        withAliases usesTopicAliases: Bool
    ) async throws -> Int {
        let tally = Tally()
        let transport = try MosquittoServer.transport(.v5, at: listener) {
            $0.aliases.isUsed = usesTopicAliases
            $0.buffering = BufferPolicy(.holdBack)
            $0.wireLogger = tally
        }
        let provider = Provider<WireEntry>(transport: transport)
        // All numbers have the same length, so that the byte counts can be compared.
        let root = "waybill/\(UInt64.random(in: 1_000_000_000...9_999_999_999))/aliases"
        let messages = try await provider.messages(.subscribe("\(root)/#", .atLeastOnce))
        var expected: Set<String> = []
        for number in 0..<1_000 {
            let topic = "\(root)/sensor/\(10 + number % 50)"
            let qos: QoS = number % 2 == 0 ? .atLeastOnce : .atMostOnce
            try await provider.request(.send(.init("\(number)"), to: topic, qos))
            expected.insert("\(topic) \(number)")
        }
        var heard: Set<String> = []
        for try await message in messages {
            heard.insert("\(message.topic) \(message.text ?? "")")
            if heard.count == 1_000 { break }
        }
        #expect(heard == expected)
        await transport.shutdown()
        return tally.byteCount.withLock { $0 }
    }

    /// The listeners grant 10 and 5 aliases.
    @Test(
        "1,000 messages on 50 topics arrive right, with fewer bytes",
        arguments: [(MosquittoServer.Listener.open, 10), (.small, 5)]
    )
    func fewerBytes(listener: MosquittoServer.Listener, aliasCount: Int) async throws {
        let without = try await bytes(at: listener, withAliases: false)
        let with = try await bytes(at: listener, withAliases: true)
        // Each alias names 19 messages, whose topics have 36 bytes, in 3 bytes; its definition takes 3 more.
        #expect(without - with == aliasCount * (19 * 33 - 3))
    }
}
