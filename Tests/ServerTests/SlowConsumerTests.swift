import Testing
import Waybill
import WaybillMQTT

/// Mosquitto as Debian packages it, which exceeds the Receive Maximum of a slow client.
@Suite(
    "Mosquitto as packaged: a slow consumer",
    .enabled(
        if: MosquittoServer.isRunning,
        "Mosquitto is not running: Tests/Servers/with --install -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct SlowConsumerTests {
    private static let versions: [MQTTConfiguration.Version] = [.v3_1_1, .v5]

    @Test(
        "A loop that takes a millisecond a message hears 5,000 of 5,000 at QoS 2, each once",
        arguments: versions
    )
    func exactlyOnce(version: MQTTConfiguration.Version) async throws {
        let qos = QoS.exactlyOnce
        let count = 5_000
        let topic = "waybill/slow/\(UInt64.random(in: 0 ... .max))"
        let transport = try MosquittoServer.transport(version, at: .packaged)
        let messages = try await Provider<WireEntry>(transport: transport)
            .messages(.subscribe(topic, qos))
        let consumer = Task {
            var numbers: [Int] = []
            for try await message in messages {
                // Stands for the app's work. The test checks the order, not the time.
                try await Task.sleep(for: .milliseconds(1))
                numbers.append(message.text.flatMap { Int($0) } ?? -1)
                if numbers.count == count { break }
            }
            return numbers
        }
        let (publisher, sender) = try MosquittoServer.provider(version, at: .packaged)
        try await withThrowingTaskGroup { group in
            for worker in 0..<100 {
                group.addTask {
                    for number in stride(from: worker, to: count, by: 100) {
                        try await sender.request(.send(.init("\(number)"), to: topic, qos))
                    }
                }
            }
            try await group.waitForAll()
        }
        let numbers = try await consumer.value
        #expect(numbers.count == count)
        #expect(Set(numbers) == Set(0..<count))
        #expect("\(transport.states.current)" == "connected")
        await publisher.shutdown()
        await transport.shutdown()
    }

    @Test(
        "A second listener gets the retained messages, the first one none twice",
        arguments: versions
    )
    func retained(version: MQTTConfiguration.Version) async throws {
        let topic = "waybill/kept/\(UInt64.random(in: 0 ... .max))"
        let (transport, provider) = try MosquittoServer.provider(version, at: .packaged)
        for number in 0..<3 {
            try await provider.request(
                .send(.init("\(number)"), to: "\(topic)/\(number)", .atLeastOnce, [.retained])
            )
        }
        let streams = [
            try await provider.messages(.subscribe("\(topic)/+", .atLeastOnce)),
            try await provider.messages(.subscribe("\(topic)/+", .atLeastOnce)),
        ]
        try await provider.request(.send("live", to: "\(topic)/live", .atLeastOnce))
        for stream in streams {
            var texts: [String] = []
            for try await message in stream {
                texts.append(message.text ?? "")
                if texts.last == "live" { break }
            }
            #expect(texts.sorted() == ["0", "1", "2", "live"])
        }
        for number in 0..<3 {
            try await provider.request(
                .send(Payload(), to: "\(topic)/\(number)", .atLeastOnce, [.retained])
            )
        }
        await transport.shutdown()
    }
}
