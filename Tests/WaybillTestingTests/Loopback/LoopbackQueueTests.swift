import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSTOMP
import WaybillTesting
import WireCore

/// The messages that a queue keeps when subscribers leave, and the destinations of replies.
@Suite("Loopback queues", .inSimulation, .timeLimit(.minutes(30))) struct LoopbackQueueTests {
    private typealias Client = LoopbackFrameClient

    /// A subscriber that has got four messages of a queue, and the client that sent them.
    private func subscriber(
        _ bench: LoopbackBench,
        ids: [String] = ["1"],
        ack: String
    ) throws -> (subscriber: Client, sender: Client) {
        let subscriber = try Client(bench)
        for id in ids { try subscriber.subscribe(id, to: "/queue/q", ack: ack) }
        let sender = try Client(bench)
        for body in ["a", "b", "c", "d"] { try sender.send(body, to: "/queue/q") }
        return (subscriber, sender)
    }

    @Test(
        "What was not acknowledged goes back in its place, with the connection and with the subscription",
        arguments: [true, false]
    )
    func goesBack(isConnection: Bool) async throws {
        let bench = LoopbackBench()
        let (first, sender) = try subscriber(bench, ack: "client-individual")
        let frames = try first.frames()
        #expect(frames.count == 4)
        try first.send("ACK", ["id:\(Client.value(of: "ack", in: frames[1]))"])
        #expect(bench.broker.unacknowledgedCount(of: "/queue/q") == 3)
        if isConnection { first.stream.abandon() } else { try first.send("UNSUBSCRIBE", ["id:1"]) }
        try sender.send("e", to: "/queue/q")
        #expect(bench.broker.unacknowledgedCount(of: "/queue/q") == 0)
        let second = try Client(bench)
        try second.subscribe("2", to: "/queue/q")
        #expect(try second.messages() == ["2: a again", "2: c again", "2: d again", "2: e"])
        if !isConnection { #expect(try first.messages() == []) }
        await bench.broker.stop()
    }

    @Test("Messages of several subscriptions of one connection go back in one order")
    func order() async throws {
        let bench = LoopbackBench()
        let (first, _) = try subscriber(bench, ids: ["1", "2"], ack: "client")
        #expect(try first.messages().count == 4)
        let second = try Client(bench)
        try second.subscribe("3", to: "/queue/q")
        first.stream.close()
        #expect(
            try second.messages() == ["3: a again", "3: b again", "3: c again", "3: d again"]
        )
        await bench.broker.stop()
    }

    @Test("NACK brings the message again; acknowledged by `auto`, none comes again")
    func refused() async throws {
        let bench = LoopbackBench()
        let (first, _) = try subscriber(bench, ack: "client-individual")
        let frames = try first.frames()
        try first.send("NACK", ["id:\(Client.value(of: "ack", in: frames[2]))"])
        #expect(try first.messages() == ["1: c again"])
        first.stream.close()
        let taking = try Client(bench)
        try taking.subscribe("2", to: "/queue/q", ack: "auto")
        #expect(try taking.messages().count == 4)
        taking.stream.close()
        let last = try Client(bench)
        try last.subscribe("3", to: "/queue/q")
        #expect(try last.messages() == [])
        await bench.broker.stop()
    }

    @Test("Answers to a temporary queue go to the connection that named it, each to its own")
    func temporary() async throws {
        let bench = LoopbackBench { $0.stompServer = "RabbitMQ/loopback" }
        let server = try Client(bench)
        try server.subscribe("s", to: "sums", ack: "auto")
        let clients = [try Client(bench), try Client(bench)]
        for (index, client) in clients.enumerated() {
            try client.send("\(index)", to: "sums", ["reply-to:/temp-queue/answers"])
            try client.send("\(index)", to: "sums", ["reply-to:/temp-queue/answers"])
        }
        for frame in try server.frames() {
            let destination = Client.value(of: "reply-to", in: frame)
            try server.send("re \(frame.last ?? "")", to: destination)
        }
        for (index, client) in clients.enumerated() {
            let answer = "/temp-queue/answers: re \(index)"
            #expect(try client.messages() == [answer, answer])
        }
        try clients[0].subscribe("x", to: "/temp-queue/answers")
        #expect(try clients[0].frames().first?.first == "ERROR")
        await bench.broker.stop()
    }

    @Test(
        "A transport's requests are answered over a temporary queue, however it is subscribed to",
        arguments: ["RabbitMQ/loopback", "loopback"]
    )
    func requests(server: String) async throws {
        let bench = LoopbackBench { $0.stompServer = server }
        let adder = Provider<SumEntry>(transport: try bench.stomp())
        let sums = try await adder.messages(.sums())
        let adding = Task {
            for try await message in sums {
                let sum = try JSONBodyDecoder().decode(SumEntry.Sum.self, from: message)
                try await adder.request(.answer(sum.a + sum.b, to: message))
            }
        }
        let provider = Provider<SumEntry>(transport: try bench.stomp())
        for number in 0..<3 {
            let sum: Int = try await provider.request(.add(.init(a: number, b: 1)))
            #expect(sum == number + 1)
        }
        adding.cancel()
        await bench.broker.stop()
    }

    @Test("A queue is bounded in bytes, too")
    func bytes() async throws {
        let bench = LoopbackBench { $0.queueByteLimit = 10 }
        let sender = try Client(bench)
        try sender.send("123456", to: "/queue/q")
        try sender.send("1234", to: "/queue/q", ["receipt:1"])
        #expect(try sender.frames().map(\.first) == ["RECEIPT"])
        try sender.send("x", to: "/queue/q")
        #expect(try sender.frames().map(\.first) == ["ERROR"])
        let taking = try Client(bench)
        try taking.subscribe("1", to: "/queue/q", ack: "auto")
        try taking.send("x", to: "/queue/q")
        #expect(try taking.messages() == ["1: 123456", "1: 1234", "1: x"])
        await bench.broker.stop()
    }
}
