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
    @Test(
        "A thousand sends of QoS 0, then the scope ends, and the process with it",
        arguments: 1...5
    )
    func scope(run: Int) async throws {
        let topic = "waybill/farewell/\(getpid())"
        let transport = try MosquittoServer.transport(.v5)
        let messages = try await Provider<WireEntry>(transport: transport)
            .messages(.subscribe(topic, .atMostOnce))
        // Without a value of this process: Swift 6.2 cannot pass one.
        try await #require(processExitsWith: .success) {
            let topic = "waybill/farewell/\(getppid())"
            let chat = Provider<WireEntry>(transport: try MosquittoServer.transport(.v5))
            try await chat.withConnection {
                for number in 0..<1_000 {
                    try await chat.request(.send(Payload("\(number)"), to: topic, .atMostOnce))
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
