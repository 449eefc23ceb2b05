import Testing
import TransportTestSupport
import Waybill
import WaybillTesting
import WireTestSupport

@Suite("Streams of messages", .inSimulation, .timeLimit(.minutes(30))) struct MessagesTests {
    private func text(_ number: Int) -> Message {
        Message(topic: "t", body: Payload("\(number)"))
    }

    private func take(
        _ count: Int,
        _ iterator: inout Messages<Message>.AsyncIterator
    ) async throws -> [String] {
        var texts: [String] = []
        for _ in 0..<count {
            guard let message = try await iterator.next() else { break }
            texts.append(message.text ?? "")
        }
        return texts
    }

    @Test(
        "Two subscribers of one topic each get each message once; when one leaves, the other stays"
    )
    func twoSubscribers() async throws {
        let mock = MockTransport().expect(.subscribe)
        let provider = Provider<TestEntry>(transport: mock)
        var first: Messages<Message>? = try await provider.messages(.subscribe())
        let second = try await provider.messages(.subscribe())
        #expect(mock.push("1", to: "t") == 2)
        var one = try #require(first).makeAsyncIterator()
        var two = second.makeAsyncIterator()
        #expect(try await take(1, &one) == ["1"])
        #expect(try await take(1, &two) == ["1"])
        first?.cancel()
        first = nil
        #expect(try await one.next() == nil)
        #expect(mock.push("2", to: "t") == 1)
        #expect(try await take(1, &two) == ["2"])
        #expect(mock.subscriptionCount == 1)
    }

    /// Counts the outcomes of messages.
    private final class Fate: MessageDelivery {
        let taken = LockedBox(0)
        let dropped = LockedBox(0)

        func messageWasTaken() -> MessageValidity {
            taken.change { $0 += 1 }
            return .valid
        }
        func messageWasDropped() { dropped.change { $0 += 1 } }
    }

    @Test(
        "A message that one consumer has taken and another has left counts as taken, once",
        arguments: [true, false]
    )
    func sharedFate(leavesFirst: Bool) async throws {
        let (messages, feed) = Messages<Message>.makeStream()
        let fate = Fate()
        var stays = messages.makeAsyncIterator()
        var leaves = Optional(messages.makeAsyncIterator())
        var message = text(1)
        message.delivery = fate
        message.isBoundedByPeer = true
        feed.deliver([message])
        if leavesFirst { leaves = nil }
        #expect(try await stays.next() != nil)
        withExtendedLifetime(leaves) {}
        leaves = nil
        #expect(fate.taken.value == 1 && fate.dropped.value == 0)
    }

    @Test("Where a transport acknowledges what is taken, the policy neither drops nor counts")
    func toldMessages() async throws {
        let taken = LockedBox(0)
        let (messages, feed) = Messages<Message>.makeStream(
            policy: BufferPolicy(.dropOldest, messageLimit: 2),
            onTaken: { _ in taken.change { $0 += 1 } }
        )
        feed.deliver((1...10).map { text($0) })
        feed.finish()
        var count = 0
        for try await _ in messages { count += 1 }
        #expect(count == 10)
        #expect(taken.value == 10)
    }

    @Test("Cancelling ends a loop at once, whatever its iterator holds", arguments: [false, true])
    func cancelEndsAtOnce(asResults: Bool) async throws {
        let (messages, feed) = Messages<Message>.makeStream()
        let fate = Fate()
        feed.deliver(
            (1...100).map { number in
                var message = text(number)
                message.delivery = fate
                message.isBoundedByPeer = true
                return message
            }
        )
        var seen = 0
        if asResults {
            for try await _ in messages.results {
                seen += 1
                if seen == 3 { messages.cancel() }
            }
        } else {
            for try await _ in messages {
                seen += 1
                if seen == 3 { messages.cancel() }
            }
        }
        #expect(seen == 3)
        #expect(fate.taken.value == 3)
        #expect(fate.dropped.value == 97)
        var again = messages.makeAsyncIterator()
        #expect(try await again.next() == nil)
    }

    @Test("Cancelled while an interceptor is at work on a message, the loop ends without it")
    func cancelWhileIntercepted() async throws {
        struct Cancelling: Interceptor {
            let messages: LockedBox<Messages<Message>?>

            func receive(_ message: Message, context: InterceptorContext) async throws -> Message {
                messages.value?.cancel()
                return message
            }
        }
        let mock = MockTransport().expect(.subscribe)
        let box = LockedBox<Messages<Message>?>(nil)
        let provider = Provider<TestEntry>(transport: mock).intercepted(Cancelling(messages: box))
        let messages = try await provider.messages(.subscribe())
        box.change { $0 = messages }
        mock.push("1", to: "t")
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next() == nil)
    }

    @Test("Two iterations of one sequence each get each message once")
    func twoIterations() async throws {
        let (messages, feed) = Messages<Message>.makeStream()
        feed.deliver([text(1)])
        var one = messages.makeAsyncIterator()
        var two = messages.makeAsyncIterator()
        feed.deliver([text(2), text(3)])
        feed.finish()
        #expect(try await take(9, &one) == ["1", "2", "3"])
        #expect(try await take(9, &two) == ["2", "3"], "from its beginning on")
    }

    @Test("A loop that stops leaves the rest to the next one")
    func resumed() async throws {
        let (messages, feed) = Messages<Message>.makeStream()
        feed.deliver((1...5).map(text))
        for try await message in messages where message.text == "2" { break }
        var next = messages.makeAsyncIterator()
        #expect(try await take(2, &next) == ["3", "4"])
        feed.finish()
        #expect(try await take(9, &next) == ["5"])
    }

    @Test("An element that cannot be decoded is an error in its place and ends nothing")
    func decodingFailure() async throws {
        let mock = MockTransport().expect(.subscribe)
        let provider = Provider<TestEntry>(transport: mock)
        let points: Messages<Point> = try await provider.messages(.subscribe())
        let raw = try await provider.messages(.subscribe())
        let bodies = [#"{"x":1,"y":1}"#, "rubbish", #"{"x":2,"y":2}"#]
        for body in bodies { mock.push(Payload(body), to: "t") }

        var iterator = points.makeAsyncIterator()
        #expect(try await iterator.next() == Point(x: 1, y: 1))
        await expectError(.decodingFailed) { try await iterator.next() }
        #expect(try await iterator.next() == Point(x: 2, y: 2))

        var others = raw.makeAsyncIterator()
        #expect(try await take(3, &others) == bodies, "the other subscribers are not disturbed")

        for body in bodies { mock.push(Payload(body), to: "t") }
        mock.dropConnection()
        var seen: [String] = []
        await #expect(throws: WaybillError.self) {
            // The first loop's iterator still exists, so this one has its own place after all earlier messages.
            for try await result in points.results { seen.append("\(result.map(\.x))") }
        }
        #expect(seen.isEmpty)
        #expect(try await iterator.next() == Point(x: 1, y: 1))
        await expectError(.decodingFailed) { try await iterator.next() }
        #expect(try await iterator.next() == Point(x: 2, y: 2))
        await #expect(throws: WaybillError.self) { try await iterator.next() }
    }

    @Test("Results show each failure in its place, to a loop that takes over what waits")
    func results() async throws {
        let mock = MockTransport().expect(.subscribe)
        let provider = Provider<TestEntry>(transport: mock)
        let points: Messages<Point> = try await provider.messages(.subscribe())
        for body in [#"{"x":0,"y":0}"#, #"{"x":1,"y":1}"#, "rubbish", #"{"x":2,"y":2}"#] {
            mock.push(Payload(body), to: "t")
        }
        for try await point in points where point.x == 0 { break }
        mock.dropConnection()
        var seen: [String] = []
        await #expect(throws: WaybillError.self) {
            for try await result in points.results {
                switch result {
                case .success(let point): seen.append("\(point.x)")
                case .failure(let error): seen.append(error.code.name)
                }
            }
        }
        #expect(seen == ["1", "decodingFailed", "2"])
    }

    @Test("The end comes after what waits, once")
    func end() async throws {
        let (messages, feed) = Messages<Message>.makeStream()
        feed.deliver([text(1)])
        feed.finish(throwing: WaybillError(.connectionLost, "gone"))
        feed.deliver([text(2)])
        var iterator = messages.makeAsyncIterator()
        #expect(try await take(1, &iterator) == ["1"])
        await expectError(.connectionLost) { try await iterator.next() }
        #expect(try await iterator.next() == nil)
    }

    @Test("What waits is bounded: the policies, and what they count")
    func policies() async throws {
        for (overflow, kept) in [
            (BufferPolicy.Overflow.dropOldest, ["3", "4", "5"]), (.dropNewest, ["1", "2", "3"]),
            (.holdBack, ["1", "2", "3", "4", "5"]),
        ] {
            let (messages, feed) = Messages<Message>.makeStream(
                policy: BufferPolicy(overflow, messageLimit: 3)
            )
            for number in 1...5 { feed.deliver([text(number)]) }
            #expect(messages.droppedCount == 5 - kept.count)
            feed.finish()
            var iterator = messages.makeAsyncIterator()
            #expect(try await take(9, &iterator) == kept)
        }
        let (failing, feed) = Messages<Message>.makeStream(
            policy: BufferPolicy(.fail, messageLimit: 3)
        )
        feed.deliver((1...5).map(text))
        var iterator = failing.makeAsyncIterator()
        #expect(try await take(3, &iterator) == ["1", "2", "3"])
        await expectError(.slowConsumer) { try await iterator.next() }
    }

    @Test("Bytes are bounded, too; one message may pass the limit alone")
    func byteLimit() async throws {
        let (messages, feed) = Messages<Message>.makeStream(
            policy: BufferPolicy(.dropOldest, byteLimit: 10)
        )
        let large = Message(topic: "t", body: Payload([UInt8](repeating: 0, count: 100)))
        feed.deliver([large])
        feed.deliver([Message(topic: "t", body: "12345678")])
        feed.deliver([Message(topic: "t", body: "ab")])
        feed.finish()
        var iterator = messages.makeAsyncIterator()
        #expect(try await take(9, &iterator) == ["12345678", "ab"])
        #expect(messages.droppedCount == 1)
    }

    @Test(
        "Cancelling an iteration ends its wait; letting go of the last copy ends the subscription"
    )
    func cancellation() async throws {
        let terminated = LockedBox(0)
        let started = LockedBox(false)
        do {
            let (messages, feed) = Messages<Message>.makeStream { terminated.change { $0 += 1 } }
            let task = Task {
                var iterator = messages.makeAsyncIterator()
                started.change { $0 = true }
                _ = try await iterator.next()
            }
            try await waitUntil { started.value }
            #expect(terminated.value == 0)
            task.cancel()
            await #expect(throws: CancellationError.self) { try await task.value }
            #expect(terminated.value == 0, "the sequence is still held")
            _ = feed
            messages.cancel()
            messages.cancel()
            #expect(terminated.value == 1)
        }
        do {
            let (messages, _) = Messages<Message>.makeStream { terminated.change { $0 += 1 } }
            var iterator: Messages<Message>.AsyncIterator? = messages.makeAsyncIterator()
            _ = iterator
            iterator = nil
        }
        #expect(terminated.value == 2)
    }

    @Test("A waiting consumer is woken by what comes, over and over")
    func handOver() async throws {
        let (messages, feed) = Messages<Message>.makeStream()
        let consumer = Task {
            var sum = 0
            for try await message in messages { sum += message.body.count }
            return sum
        }
        for number in 0..<2_000 {
            feed.deliver([text(number)])
            if number % 7 == 0 { await Task.yield() }
        }
        feed.finish()
        #expect(try await consumer.value == 10 + 90 * 2 + 900 * 3 + 1_000 * 4)
    }
}

@Suite("The completion-handler form", .inSimulation, .timeLimit(.minutes(30)))
struct CompletionTests {
    @Test("A request's handler runs once, a subscription's once per message")
    func handlers() async throws {
        let mock = MockTransport().expect(.send, .reply("r")).expect(.subscribe).expect(.connect)
        let provider = Provider<TestEntry>(transport: mock)
        let reply = await withCheckedContinuation { continuation in
            provider.request(of: String.self, entry: .send(.none)) {
                continuation.resume(returning: $0)
            }
        }
        // The receipt has it, although nobody has asked.
        #expect(try reply.get() == "r" && mock.requests.last?.expectsReply == false)
        let receipt = await withCheckedContinuation { continuation in
            provider.request(of: Receipt.self, entry: .connect) {
                continuation.resume(returning: $0)
            }
        }
        #expect(throws: Never.self) { try receipt.get() }

        let (stream, feed) = AsyncStream<String>.makeStream()
        let token = provider.request(of: String.self, entry: .subscribe()) { result in
            feed.yield((try? result.get()) ?? "failed")
        }
        try await waitUntil { mock.subscriptionCount != 0 }
        mock.push("1", to: "t")
        mock.push(Payload([0xFF]), to: "t")
        mock.push("2", to: "t")
        var heard = stream.makeAsyncIterator()
        #expect(await heard.next() == "1")
        #expect(await heard.next() == "failed")
        #expect(await heard.next() == "2")
        token.cancel()
        token.cancel()
        try await waitUntil { mock.subscriptionCount == 0 }
    }

    @Test("A failure reaches the handler, a cancelled request does not")
    func failures() async throws {
        let mock = MockTransport().expect(.send, .failure(WaybillError(.rejected, "no")))
            .expect(.connect, .silence)
        let provider = Provider<TestEntry>(transport: mock)
        let result = await withCheckedContinuation { continuation in
            provider.request(of: Message.self, entry: .send(.none)) {
                continuation.resume(returning: $0)
            }
        }
        #expect(throws: WaybillError.self) { try result.get() }
        let calls = LockedBox(0)
        let token = provider.request(of: Receipt.self, entry: .connect) { _ in
            calls.change { $0 += 1 }
        }
        try await waitUntil { mock.requests.count >= 2 }
        token.cancel()
        mock.dropConnection()
        await untilQuiet()
        #expect(calls.value == 0)
    }
}
