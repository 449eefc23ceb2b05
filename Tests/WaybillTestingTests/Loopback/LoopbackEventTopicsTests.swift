import Testing
import WaybillTesting

@Suite("Event streams of the loopback broker, as a value") struct LoopbackEventTopicsTests {
    private func publish(_ topics: inout LoopbackEventTopics, _ data: UInt8...) -> [[UInt64]] {
        data.map { topics.publish("a", type: "message", data: [$0]) }
    }

    private func take(
        _ topics: inout LoopbackEventTopics,
        _ client: UInt64,
        hasSent: Bool = false,
        isWithheld: Bool = false
    ) -> [UInt64]? {
        topics.take(for: client, hasSent: hasSent, isWithheld: isWithheld)?.events.map(\.id)
    }

    @Test("A topic is remembered from its first stream or POST on, up to its limit")
    func memory() {
        var topics = LoopbackEventTopics(memory: 2)
        #expect(publish(&topics, 1) == [[]])
        topics.note("a")
        #expect(publish(&topics, 2, 3, 4) == [[], [], []])
        topics.open("a", after: "0", 7)
        // The event before the POST was not kept, and has no id.
        #expect(take(&topics, 7, hasSent: true) == [2, 3])
    }

    @Test(
        "A stream begins after the last event id; anything but a number is as good as none",
        arguments: zip(["0", "1", "9", "x", nil], [[1, 2] as [UInt64], [2], [], [], []])
    )
    func resumption(_ last: String?, _ expected: [UInt64]) {
        var topics = LoopbackEventTopics(memory: 10)
        topics.note("a")
        _ = publish(&topics, 1, 2)
        topics.open("a", after: last, 7)
        #expect(take(&topics, 7, hasSent: true) ?? [] == expected)
    }

    @Test("Only one caller sends at a time, and events that come meanwhile follow in order")
    func turns() {
        var topics = LoopbackEventTopics(memory: 10)
        topics.open("a", after: nil, 7)
        #expect(publish(&topics, 1) == [[7]])
        // The head of the response is not sent yet.
        #expect(take(&topics, 7) == nil)
        #expect(take(&topics, 7, hasSent: true) == [1])
        #expect(publish(&topics, 2, 3) == [[7], [7]])
        #expect(take(&topics, 7) == nil)
        #expect(!topics.isIdle)
        #expect(take(&topics, 7, hasSent: true) == [2, 3])
        #expect(take(&topics, 7, hasSent: true) == nil)
        #expect(topics.isIdle)
    }

    @Test("Withheld events wait for the next call; those of a stream that has ended are forgotten")
    func withheld() {
        var topics = LoopbackEventTopics(memory: 10)
        topics.open("a", after: nil, 7)
        _ = take(&topics, 7, hasSent: true)
        _ = publish(&topics, 1)
        #expect(take(&topics, 7, isWithheld: true) == nil)
        #expect(take(&topics, 7) == [1])
        topics.remove(7)
        #expect(publish(&topics, 2) == [[]])
        #expect(take(&topics, 7, hasSent: true) == nil)
    }

    @Test("After a restart without state, ids begin again")
    func forgetting() {
        var topics = LoopbackEventTopics(memory: 10)
        topics.open("a", after: nil, 7)
        _ = publish(&topics, 1, 2)
        topics.forget()
        #expect(publish(&topics, 3) == [[]])
        topics.open("a", after: "0", 8)
        #expect(take(&topics, 8, hasSent: true) == nil)
        #expect(publish(&topics, 4) == [[8]])
        #expect(take(&topics, 8, hasSent: true) == [1])
    }
}
