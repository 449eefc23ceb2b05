import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSTOMP

/// A broker for requests and replies.
private enum ReplyServer: CustomTestStringConvertible, Sendable {
    case mosquitto
    case stomp(STOMPServer)

    static let all =
        (MosquittoServer.isRunning ? [ReplyServer.mosquitto] : [])
        + (STOMPServer.areRunning ? STOMPServer.all.map(ReplyServer.stomp) : [])

    var testDescription: String {
        switch self {
        case .mosquitto: "mosquitto"
        case .stomp(let server): server.testDescription
        }
    }

    func topic(_ name: String) -> String {
        let unique = "waybill-\(UInt64.random(in: 0 ... .max))-\(name)"
        return switch self {
        case .mosquitto: unique
        case .stomp: "/queue/\(unique)"
        }
    }

    func provider() throws -> (any Transport, Provider<SumEntry>) {
        switch self {
        case .mosquitto:
            let transport = try MosquittoServer.transport(.v5)
            return (transport, Provider(transport: transport))
        case .stomp(let server):
            let transport = try server.transport()
            return (transport, Provider(transport: transport))
        }
    }
}

@Suite(
    "Request and reply over brokers",
    .enabled(
        if: !ReplyServer.all.isEmpty,
        "no broker is running: Tests/Servers/with mosquitto rabbitmq activemq -- swift test"
    ),
    .timeLimit(.minutes(30))
)
struct ReplyTests {
    @Test("One by one, and a hundred at once answered in reverse order", arguments: ReplyServer.all)
    fileprivate func sums(_ server: ReplyServer) async throws {
        let (responder, adder) = try server.provider()
        let (asker, provider) = try server.provider()
        let topic = server.topic("sums")
        let sums = try await adder.messages(.sums(at: topic))
        let adding = Task {
            func answer(_ message: Message) async throws {
                let sum = try JSONBodyDecoder().decode(SumEntry.Sum.self, from: message)
                try await adder.request(.answer(sum.a + sum.b, to: message))
            }
            var iterator = sums.makeAsyncIterator()
            for _ in 0..<10 {
                guard let message = try await iterator.next() else { return }
                try await answer(message)
            }
            var waiting: [Message] = []
            while waiting.count < 100, let message = try await iterator.next() {
                waiting.append(message)
            }
            for message in waiting.reversed() { try await answer(message) }
        }
        for number in 0..<10 {
            let sum: Int = try await provider.request(.add(.init(a: number, b: 1), at: topic))
            #expect(sum == number + 1)
        }
        try await withThrowingTaskGroup { group in
            for number in 0..<100 {
                group.addTask {
                    let sum: Int = try await provider.request(
                        .add(.init(a: number, b: number), at: topic)
                    )
                    #expect(sum == 2 * number)
                }
            }
            try await group.waitForAll()
        }
        try await adding.value
        await asker.shutdown()
        await responder.shutdown()
    }

    @Test("A queue of one's own instead of a temporary one", arguments: STOMPServer.all)
    func ownQueue(_ server: STOMPServer) async throws {
        guard STOMPServer.areRunning else { return }
        let queue = "/queue/waybill-\(UInt64.random(in: 0 ... .max))"
        let responder = try server.transport()
        let transport = try server.transport { $0.replyDestination = queue + "-replies" }
        let adder = Provider<SumEntry>(transport: responder)
        let sums = try await adder.messages(.sums(at: queue))
        let adding = Task {
            var iterator = sums.makeAsyncIterator()
            guard let message = try await iterator.next() else { return }
            try await adder.request(.answer(42, to: message))
        }
        let sum: Int = try await Provider<SumEntry>(transport: transport)
            .request(.add(.init(a: 1, b: 1), at: queue))
        #expect(sum == 42)
        try await adding.value
        await transport.shutdown()
        await responder.shutdown()
    }
}
