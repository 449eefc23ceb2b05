import Testing
import TransportTestSupport
import Waybill
import WaybillMQTT
import WaybillSSE
import WaybillSTOMP
import WaybillTesting

/// Marks the replies that pass.
private struct Marking: Interceptor {
    func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
        var message = message
        message.headers.append(name: "seen", value: "yes")
        return message
    }
}

@Suite("Request and reply (feature 153)", .inSimulation, .timeLimit(.minutes(30))) struct ReplyTests
{
    @Test(
        "The same entries and the same calls over every transport",
        arguments: LoopbackBroker.Service.allCases
    )
    func sums(_ service: LoopbackBroker.Service) async throws {
        let broker = LoopbackBroker()
        try broker.start()
        // Over HTTP the server itself replies. Over a broker, a subscriber does.
        var adding: Task<Void, any Error>?
        if service == .eventStream {
            broker.faults.answers = (0..<10).map { .init(200, body: Payload("\($0 + 1)")) }
        } else {
            let adder = Provider<SumEntry>(transport: try broker.transport(service))
            let sums = try await adder.messages(.sums())
            adding = Task {
                for try await message in sums {
                    let sum = try JSONBodyDecoder().decode(SumEntry.Sum.self, from: message)
                    try await adder.request(.answer(sum.a + sum.b, to: message))
                }
            }
        }
        let provider = Provider<SumEntry>(transport: try broker.transport(service)).intercepted(
            Marking()
        )
        for number in 0..<10 {
            let sum: Int = try await provider.request(.add(.init(a: number, b: 1)))
            #expect(sum == number + 1)
        }
        if service != .eventStream {
            let reply = try await provider.request(.add(.init(a: 1, b: 2)), as: Message.self)
            #expect(reply.text == "3" && reply.headers["seen"] == "yes")
        }
        adding?.cancel()
        await broker.stop()
    }

    @Test("An answer crosses from MQTT to STOMP and back")
    func acrossProtocols() async throws {
        let broker = LoopbackBroker()
        try broker.start()
        for (asking, answering) in [
            (LoopbackBroker.Service.mqtt, LoopbackBroker.Service.stomp), (.stomp, .mqtt),
        ] {
            let adder = Provider<SumEntry>(transport: try broker.transport(answering))
            let sums = try await adder.messages(.sums())
            let adding = Task {
                var iterator = sums.makeAsyncIterator()
                guard let message = try await iterator.next() else { return }
                try await adder.request(.answer(42, to: message))
            }
            let sum: Int = try await Provider<SumEntry>(transport: broker.transport(asking))
                .request(.add(.init(a: 1, b: 1)))
            #expect(sum == 42)
            try await adding.value
        }
        await broker.stop()
    }
}
