import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

@Suite("Streams that skip what fails", .inSimulation, .timeLimit(.minutes(30))) struct SkippingTests
{
    private struct Refused: Error {}

    /// Refuses messages whose text asks for it.
    private struct Guard: Interceptor {
        func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
            if message.text == "refuse" { throw Refused() }
            return message
        }
    }

    private func subscription(
        _ mock: MockTransport,
        _ interceptors: [any Interceptor] = []
    ) async throws -> Messages<Point> {
        mock.expect(.subscribe)
        var provider = Provider<TestEntry>(transport: mock)
        for interceptor in interceptors { provider = provider.intercepted(interceptor) }
        return try await provider.messages(.subscribe(), as: Point.self)
    }

    private static let texts = ["no", #"{"x":1,"y":1}"#, "[]", "refuse", #"{"x":2,"y":2}"#, "{}"]

    @Test("A loop gets what can be decoded, and each failure is reported in its turn")
    func skips() async throws {
        let mock = MockTransport()
        let messages = try await subscription(mock, [Guard()])
        let reported = LockedBox([WaybillError]())
        let valid = messages.skippingFailures { error in reported.change { $0.append(error) } }
        var iterator = valid.makeAsyncIterator()
        for text in Self.texts { mock.push(Payload(text), to: "t") }
        #expect(try await iterator.next()?.x == 1)
        #expect(reported.value.map(\.code) == [.decodingFailed])
        #expect(try await iterator.next()?.x == 2)
        #expect(
            reported.value.map(\.code) == [.decodingFailed, .decodingFailed, .interceptorFailed]
        )
        #expect(reported.value.allSatisfy { $0.topic == "t" && $0.command == "subscribe" })
        messages.cancel()
        #expect(try await iterator.next() == nil)
    }

    @Test("Without a closure the failures are events of the transport")
    func events() async throws {
        let mock = MockTransport()
        let messages = try await subscription(mock)
        var events = mock.events.makeAsyncIterator()
        for text in Self.texts { mock.push(Payload(text), to: "t") }
        var iterator = messages.skippingFailures.makeAsyncIterator()
        #expect(try await iterator.next()?.x == 1)
        var event = await events.next()
        while let found = event, found.kind != .skipped { event = await events.next() }
        #expect(event?.topic == "t" && event?.error?.code == .decodingFailed)
        await mock.shutdown()
    }

    @Test("The failure of the subscription itself is thrown")
    func failure() async throws {
        let mock = MockTransport()
        let messages = try await subscription(mock)
        mock.push("no", to: "t")
        mock.dropConnection()
        var count = 0
        let error = await expectError(.connectionLost) {
            for try await _ in messages.skippingFailures { count += 1 }
        }
        #expect(count == 0 && error?.topic == "t")
    }
}
