import Testing
import Waybill
import WaybillSTOMP

/// The topics of one enum at brokers with different naming rules.
@Suite(
    "Topic styles at STOMP brokers",
    .enabled(
        if: STOMPServer.areRunning,
        "RabbitMQ and ActiveMQ are not running: Tests/Servers/with --install rabbitmq activemq -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct TopicStyleServerTests {
    @Test("Topics and filters mean what they mean over MQTT", arguments: STOMPServer.all)
    func filters(server: STOMPServer) async throws {
        let transport = try server.transport()
        let style: TopicStyle = server.isRabbitMQ ? .rabbitMQ : .activeMQ
        let provider = Provider<AnyEntry>(transport: transport).topicStyle(style)
        let base = "waybill-\(UInt64.random(in: 0 ... .max))"
        let one = try await provider.messages(.subscribe(topic: "\(base)/lobby"))
        let level = try await provider.messages(.subscribe(topic: "\(base)/+"))
        let all = try await provider.messages(.subscribe(topic: "\(base)/#"))
        let several = try await provider.messages(
            .subscribe(topics: ["\(base)/lobby", "\(base)/attic/left"])
        )
        for topic in ["lobby", "attic/left", "cellar", "lobby"] {
            try await provider.request(
                .send(topic: "\(base)/\(topic)", body: .text(topic), qos: .atLeastOnce)
            )
        }
        func texts(_ messages: Messages<Message>, _ count: Int) async throws -> [String] {
            var texts: [String] = []
            for try await message in messages {
                #expect(message.topic == "\(base)/\(message.text ?? "")")
                texts.append(message.text ?? "")
                if texts.count == count { break }
            }
            return texts
        }
        #expect(try await texts(one, 2) == ["lobby", "lobby"])
        #expect(try await texts(level, 3) == ["lobby", "cellar", "lobby"])
        #expect(try await texts(all, 4) == ["lobby", "attic/left", "cellar", "lobby"])
        #expect(try await texts(several, 3).sorted() == ["attic/left", "lobby", "lobby"])
        await transport.shutdown()
    }
}
