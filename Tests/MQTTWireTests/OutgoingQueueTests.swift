import MQTTWire
import Testing
import WireCore

/// Messages that leave the queue out of their turn.
@Suite("MQTT client: the queue of outbound messages") struct OutgoingQueueTests {
    /// A client with room for one message in flight, whose session lasts.
    private static func client() throws -> ClientHarness {
        try ClientHarness(connect: MQTTConnect(clientIdentifier: "c", cleanStart: false)) {
            $0.keepsSession = true
            $0.inflightWindow = 1
        }
    }

    private static func message(once: Bool = false) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage(
            publish: MQTTPublish(topic: "t", qos: .atLeastOnce),
            payload: [],
            isSentOnce: once
        )
    }

    @Test("The next connection sends after messages that are sent once have left the queue")
    func sentOnce() throws {
        var harness = try Self.client()
        for number in 1...3 {
            try harness.client.publish(
                Self.message(once: true),
                call: Call(number),
                at: harness.now
            )
        }
        #expect(harness.sent.count == 1, "the others wait for room")
        try harness.reconnect(sessionPresent: true)
        harness.resume()
        try harness.client.publish(Self.message(), call: Call(4), at: harness.now)
        #expect(harness.sent.count == 1, "nothing is in flight")
    }

    @Test("The next connection sends after a call was withdrawn without a connection")
    func withdrawn() throws {
        var harness = try Self.client()
        let calls = (1...2).map { Call($0) }
        for call in calls {
            try harness.client.publish(Self.message(), call: call, at: harness.now)
        }
        _ = harness.sent
        var state = harness.cut()
        state.cancel(calls[1])
        try harness.connect(resuming: state, connack: MQTTConnackPacket(sessionPresent: true))
        harness.resume()
        #expect(harness.sent.count == 1, "the first message again")
        harness.receive(.puback(.ack(1)))
        try harness.client.publish(Self.message(), call: Call(3), at: harness.now)
        #expect(harness.sent.count == 1)
    }

    /// The places of the messages that stay, of 300.
    static let rows: [Set<Int>] = [
        [], [0], [299], [150], [0, 299], Set(0..<100), Set(200..<300), Set(0..<300),
    ]

    @Test("What stays keeps its order, wherever others are taken out", arguments: rows)
    func gaps(staying: Set<Int>) {
        for taken in [0, 1, 40] {
            var queue = MQTTOutgoingQueue()
            let calls = (0..<300).map { Call($0) }
            for call in calls {
                queue.append(.init(message: Self.message(), call: call, deadline: .zero))
            }
            let first = (0..<taken).compactMap { _ in (queue.popFirst()?.call as? Call)?.number }
            #expect(first == Array(0..<taken))
            for call in calls where call.number >= taken && !staying.contains(call.number) {
                let isFound = [queue.withdraw(call), queue.withdraw(call)]
                #expect(isFound == [true, false])
            }
            let rest = staying.sorted().filter { $0 >= taken }
            #expect(queue.count == rest.count)
            #expect(queue.isEmpty == rest.isEmpty)
            #expect(queue.calls.compactMap { ($0 as? Call)?.number } == rest)
            queue.prepend([.init(message: Self.message(), call: Call(-1), deadline: .zero)])
            var popped: [Int] = []
            while let entry = queue.popFirst() { popped.append((entry.call as? Call)?.number ?? 0) }
            #expect(popped == [-1] + rest)
            #expect(queue.isEmpty)
        }
    }
}
