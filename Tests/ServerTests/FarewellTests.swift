import Foundation
import Testing
import Waybill
import WaybillMQTT

/// A message whose send was awaited in a scope arrives, even when the process ends right after the scope.
@Suite(
    "Farewells",
    .enabled(if: MosquittoServer.isRunning, "Mosquitto is not running"),
    // All runs have one topic.
    .serialized,
    .timeLimit(.minutes(30))
)
struct FarewellTests {
    private static let topic = "waybill/farewell"

    @Test(
        "A thousand sends of QoS 0, then the scope ends, and the process with it",
        arguments: 1...5
    )
    func scope(run: Int) async throws {
        let transport = try MosquittoServer.transport(.v5)
        let messages = try await Provider<WireEntry>(transport: transport)
            .messages(.subscribe(Self.topic, .atMostOnce))
        // Swift 6.2 can pass no value to the other process.
        try await #require(processExitsWith: .success) {
            let chat = Provider<WireEntry>(transport: try MosquittoServer.transport(.v5))
            try await chat.withConnection {
                for number in 0..<1_000 {
                    try await chat.request(
                        .send(Payload("\(number)"), to: FarewellTests.topic, .atMostOnce)
                    )
                }
            }
        }
        var count = 0
        for try await message in messages {
            #expect(message.text == "\(count)")
            count += 1
            if count == 1_000 { break }
        }
        await transport.shutdown()
    }
}
