import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillTesting
import WireCore
import WireTestSupport

@Suite("MQTT transport: topic aliases", .inSimulation, .timeLimit(.minutes(30)))
struct AliasTests {
    private struct Outcome: Sendable {
        var sent = 0
        var received = 0
        /// The number of packets without a topic, both ways.
        var names = 0
    }

    /// Adds up the PUBLISH packets of both clients.
    private final class Tally: WireLogger {
        let outcome = Locked(Outcome())

        func log(_ record: WireRecord) {
            guard record.kind == .frame, record.text.hasPrefix("PUBLISH") else { return }
            outcome.withLock { outcome in
                if record.direction == .outbound {
                    outcome.sent += record.byteCount
                } else {
                    outcome.received += record.byteCount
                }
                if record.text.hasPrefix("PUBLISH topic= ") { outcome.names += 1 }
            }
        }
    }

    private func topic(_ number: Int) -> String {
        "building/7/floor/\(number % 50)/sensor/temperature/celsius"
    }

    /// Sends 1,000 messages on 50 topics to another client, and returns what went over the wire.
    private func outcome(
        maximum: UInt16?,
        cuts: Bool = false,
        _ change: @escaping (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> Outcome {
        let fixture = try Fixture { $0.topicAliasMaximum = maximum }
        let tally = Tally()
        func client(_ name: String) throws -> (MQTTTransport, Provider<MQTTEntry>) {
            try fixture.provider {
                $0.clientIdentifier = name
                $0.session.expiry = .seconds(600)
                $0.reconnection = ReconnectionPolicy()
                $0.reconnection.initialDelay = .milliseconds(1)
                $0.buffering = BufferPolicy(.holdBack)
                $0.wireLogger = tally
                change(&$0)
            }
        }
        let (receiver, receiving) = try client("receiver")
        let (sender, sending) = try client("sender")
        let messages = try await receiving.messages(.subscribe("building/#", qos: .exactlyOnce))
        for number in 0..<1_000 {
            let qos: QoS = cuts || number % 2 == 0 ? .atLeastOnce : .atMostOnce
            try await sending.request(.send("\(number)", to: topic(number), qos: qos))
            if cuts, number % 400 == 399 { fixture.broker.dropConnections() }
        }
        var heard: Set<String> = []
        var iterator = messages.makeAsyncIterator()
        while heard.count < 1_000, let message = try await iterator.next() {
            heard.insert("\(message.topic) \(message.text ?? "")")
        }
        #expect(heard == Set((0..<1_000).map { "\(topic($0)) \($0)" }))
        await fixture.end(sender, receiver)
        return tally.outcome.withLock { $0 }
    }

    @Test("1,000 messages on 50 topics arrive right, with fewer bytes both ways")
    func fewerBytes() async throws {
        let plain = try await outcome(maximum: nil)
        #expect(plain.names == 0)
        let ten = try await outcome(maximum: 10)
        let fifty = try await outcome(maximum: 50) { $0.aliases.accepted = 50 }
        // A fifth of the messages, and nearly all.
        #expect(ten.sent < plain.sent * 9 / 10)
        #expect(ten.received < plain.received * 9 / 10)
        #expect(fifty.sent < plain.sent / 2)
        #expect(fifty.received < plain.received / 2)
        #expect(fifty.names == 2 * 950)
    }

    @Test("The app can forbid them, each way by itself")
    func forbidden() async throws {
        let plain = try await outcome(maximum: nil)
        let inbound = try await outcome(maximum: 10) { $0.aliases.isUsed = false }
        #expect(inbound.sent == plain.sent)
        #expect(inbound.received < plain.received)
        let outbound = try await outcome(maximum: 10) { $0.aliases.accepted = 0 }
        #expect(outbound.sent < plain.sent)
        #expect(outbound.received == plain.received)
    }

    @Test("Messages have their topics after lost connections, too")
    func lostConnections() async throws {
        let outcome = try await outcome(maximum: 50, cuts: true) { $0.aliases.accepted = 50 }
        #expect(outcome.names > 1_000)
    }
}
