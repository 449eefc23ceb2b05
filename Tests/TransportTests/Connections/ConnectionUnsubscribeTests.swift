import Testing
import TransportTestSupport
import Waybill
import WaybillTesting

@Suite(
    "Every transport: unsubscribing",
    .serialized,
    .inSimulation,
    .timeLimit(.minutes(30)),
    .benchesEnd
)
struct ConnectionUnsubscribeTests {
    @Test("Unsubscribing from nothing is done, over every transport", arguments: Way.allCases)
    func nothing(way: Way) async throws {
        let bench = try Bench(way)
        let messages = try await bench.open()
        let request = Request(topic: "elsewhere", command: .unsubscribe)
        let receipt = try await bench.transport.perform(request)
        #expect(receipt.topic == "elsewhere")
        // A 3.1.1 server gives no reason.
        if way != .mqtt311 {
            let reason = try #require(receipt.reason).lowercased()
            #expect(reason.hasPrefix("no subscription existed"))
        }
        // The same for a topic with a subscription, which the first call ends.
        let other = Request(topic: "room", command: .unsubscribe)
        for _ in 0..<2 { _ = try await bench.transport.perform(other) }
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == nil)
    }

    @Test(
        "While another call makes the first link, a stream that starts offline ends",
        arguments: Way.shared
    )
    func duringFirstConnect(way: Way) async throws {
        let bench = try Bench(way)
        bench.dialer.next(.silent)
        var watch = bench.watch()
        let provider = bench.provider
        let connect = Call { try await provider.request(.connect) }
        await watch.until("connecting (attempt 1)")
        let messages = try await bench.others.messages(.listen { $0[.waitsForConnection] = true })
        _ = try await bench.transport.perform(Request(topic: "room", command: .unsubscribe))
        for try await _ in messages { Issue.record("a message") }
        #expect(bench.count(way.subscribeWord) == 0)
        await bench.transport.shutdown()
        _ = await connect.error()
    }

    @Test("And over the mock, unless a rule says otherwise")
    func mock() async throws {
        let mock = MockTransport().expect(.unsubscribe)
        let receipt = try await mock.perform(Request(topic: "t", command: .unsubscribe))
        #expect(receipt.topic == nil || receipt.topic == "t")
    }
}
