import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WireTestSupport

/// Mosquitto behind a way that takes 50 KB a second, and a client with a short keep alive.
@Suite(
    "A slow way to Mosquitto",
    .serialized,
    .enabled(
        if: TestServers.isExtended && TestServers.port("MOSQUITTO_SLOW") != nil,
        "it takes a minute: Tests/night long"
    ),
    .timeLimit(.minutes(30))
)
struct SlowPathTests {
    private let topic = "slow/\(UInt64.random(in: 0 ... .max))"

    private func transport(_ keepAlive: Duration) throws -> MQTTTransport {
        try MQTTTransport(url: TestServers.url("MOSQUITTO_SLOW", "mqtt")) {
            $0.keepAlive.interval = keepAlive
            $0.timeouts.confirmation = .seconds(300)
            // A loss would end everything.
            $0.reconnection = .never
        }
    }

    @Test("A message that takes 18 s to come is not cut at a keep alive of 5 s")
    func download() async throws {
        let receiver = try transport(.seconds(5))
        let messages = try await Provider<AnyEntry>(transport: receiver)
            .messages(.subscribe(topic: topic, qos: .atLeastOnce))
        let sender = try MosquittoServer.transport(.v5)
        try await Provider<AnyEntry>(transport: sender).request(
            .send(
                topic: topic,
                body: .bytes([UInt8](repeating: 1, count: 900_000)),
                qos: .atLeastOnce
            )
        )
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.body.count == 900_000)
        await receiver.shutdown()
        await sender.shutdown()
    }

    @Test("Sends that take 42 s to leave are not cut at a keep alive of 12 s")
    func upload() async throws {
        let sender = try transport(.seconds(12))
        let provider = Provider<AnyEntry>(transport: sender)
        try await provider.connect()
        try await withThrowingTaskGroup { group in
            for _ in 0..<3 {
                group.addTask {
                    let body = EntryBody.bytes([UInt8](repeating: 1, count: 700_000))
                    try await provider.request(.send(topic: topic, body: body, qos: .atLeastOnce))
                }
            }
            try await group.waitForAll()
        }
        await sender.shutdown()
    }
}
