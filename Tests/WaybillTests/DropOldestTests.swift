import Testing
import Waybill

@Suite("Streams of messages: the oldest go", .timeLimit(.minutes(30))) struct DropOldestTests {
    private func text(_ number: Int) -> Message {
        Message(topic: "t", body: Payload("\(number)"))
    }

    private func texts(_ iterator: inout Messages<Message>.AsyncIterator) async throws -> [String] {
        var texts: [String] = []
        while let message = try await iterator.next() { texts.append(message.text ?? "") }
        return texts
    }

    /// If each drop moved all waiting messages, the test would exceed its time limit.
    @Test("A drop from a million waiting messages moves none of them")
    func constantTime() async throws {
        let limit = 1_000_000
        let drops = 300_000
        let (messages, feed) = Messages<Message>.makeStream(
            policy: BufferPolicy(.dropOldest, messageLimit: limit, byteLimit: .max)
        )
        feed.deliver(Array(repeating: text(0), count: limit))
        for number in 1...drops { feed.deliver([text(number)]) }
        #expect(messages.droppedCount == drops)
        feed.finish()
        var iterator = messages.makeAsyncIterator()
        var count = 0
        var lastNumbers: [String] = []
        while let message = try await iterator.next() {
            count += 1
            if count > limit - drops { lastNumbers.append(message.text ?? "") }
        }
        #expect(count == limit)
        #expect(lastNumbers == (1...drops).map(String.init))
    }

    @Test("However often the oldest go, the newest stay in order", arguments: [1, 3, 64, 200])
    func order(limit: Int) async throws {
        let (messages, feed) = Messages<Message>.makeStream(
            policy: BufferPolicy(.dropOldest, messageLimit: limit)
        )
        for number in 1...1_000 { feed.deliver([text(number)]) }
        feed.finish()
        var iterator = messages.makeAsyncIterator()
        #expect(try await texts(&iterator) == (1001 - limit...1_000).map(String.init))
        #expect(messages.droppedCount == 1_000 - limit)
    }

    @Test("One long message makes room for many short ones, and takes the room of many")
    func bytes() async throws {
        let (messages, feed) = Messages<Message>.makeStream(
            policy: BufferPolicy(.dropOldest, byteLimit: 300)
        )
        for number in 100..<400 { feed.deliver([text(number)]) }
        feed.deliver([Message(topic: "t", body: Payload(Array(repeating: 0x61, count: 240)))])
        for number in 400..<410 { feed.deliver([text(number)]) }
        feed.finish()
        var iterator = messages.makeAsyncIterator()
        let left = try await texts(&iterator)
        #expect(
            left.map(\.count) == Array(repeating: 3, count: 10) + [240]
                + Array(repeating: 3, count: 10)
        )
        #expect(left.first == "390" && left.last == "409")
    }

    @Test("What an iteration puts back goes first when the next messages come")
    func putBack() async throws {
        let limit = 100
        let (messages, feed) = Messages<Message>.makeStream(
            policy: BufferPolicy(.dropOldest, messageLimit: limit)
        )
        for number in 1...150 { feed.deliver([text(number)]) }
        // The iteration takes all waiting messages and returns one of them.
        for try await message in messages {
            #expect(message.text == "51")
            break
        }
        for number in 151...160 { feed.deliver([text(number)]) }
        feed.finish()
        var iterator = messages.makeAsyncIterator()
        #expect(try await texts(&iterator) == (61...160).map(String.init))
        #expect(messages.droppedCount == 59)
    }
}
