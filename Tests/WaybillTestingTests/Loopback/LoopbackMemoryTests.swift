import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WireTestSupport

/// The bounds of what the broker keeps.
@Suite("Loopback broker: memory", .inSimulation, .timeLimit(.minutes(30)))
struct LoopbackMemoryTests {
    private let mebibyte = [UInt8](repeating: 0x2E, count: 1 << 20)

    @Test("Above 64 MiB of all queues together, sends are refused")
    func all() async throws {
        let broker = try LoopbackBroker.started()
        for number in 0..<62 { broker.publish(Payload(mebibyte), to: "/queue/\(number)") }
        let provider = Provider<AnyEntry>(transport: try broker.transport(.stomp))
        var count = 0
        await expectError(.rejected) {
            while count < 8 {
                try await provider.request(.send(topic: "/queue/last", body: .bytes(mebibyte)))
                count += 1
            }
        }
        #expect((1...2).contains(count))
        await provider.shutdown()
        await broker.stop()
    }

    @Test(
        "A client that does not read is cut off above 16 MiB",
        arguments: [QoS.atMostOnce, .atLeastOnce]
    )
    func slow(qos: QoS) async throws {
        let broker = try LoopbackBroker.started()
        let transport = try MQTTTransport(url: broker.url) {
            $0.limits.memory = 4 << 20
            $0.reconnection = .never
        }
        let provider = Provider<AnyEntry>(transport: transport)
        let messages = try await provider.messages(
            AnyEntry(
                topics: ["t"],
                command: .subscribe(qos: qos, .buffering(BufferPolicy(.holdBack, messageLimit: 1)))
            )
        )
        for _ in 0..<16 { broker.publish(Payload(mebibyte), to: "t", qos: qos) }
        await untilQuiet()
        #expect(broker.connectionCount == 1)
        for _ in 0..<600 {
            broker.publish(Payload(Array(mebibyte.prefix(1 << 16))), to: "t", qos: qos)
        }
        await untilQuiet()
        #expect(broker.connectionCount == 0)
        withExtendedLifetime(messages) {}
        await transport.shutdown()
        await broker.stop()
    }
}
