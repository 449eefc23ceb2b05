import Testing
import Waybill
import WaybillSession
import WireCore

/// The waiting messages of all subscriptions of a connection, against its memory account.
@Suite("Memory of a connection") struct MemoryTests {
    private final class Acknowledged: MessageDelivery {
        func messageWasTaken() -> MessageValidity { .valid }
        func messageWasDropped() {}
    }

    /// An account, and the record of its changes between full and not full.
    private final class Connection: Sendable {
        let pressure: ReadingPressure
        private let changes = Locked([Bool]())

        init(limit: Int) {
            pressure = ReadingPressure(account: MemoryAccount(limit: limit))
            _ = account.observe { [weak self] in
                guard let self else { return }
                changes.withLock { $0.append(account.isFull) }
            }
        }

        var account: MemoryAccount { pressure.account }
        /// For each change, true when the account was full after it.
        var all: [Bool] { changes.withLock { $0 } }

        func source(_ overflow: BufferPolicy.Overflow) -> MessageSource {
            MessageSource(
                policy: BufferPolicy(overflow),
                account: account,
                callbacks: .init(onPressure: { [pressure] in pressure.update($0) })
            )
        }
    }

    /// A message that takes slightly more than 1,000 bytes.
    private func message(isAcknowledged: Bool = false, topic: String = "t") -> Message {
        var message = Message(topic: topic, body: Payload([UInt8](repeating: 0, count: 620)))
        if isAcknowledged {
            message.delivery = Acknowledged()
            message.isBoundedByPeer = true
        }
        return message
    }

    @Test(
        "A listener of all messages has the limits of its policy, whatever bounds the subscription"
    )
    func catchAll() async throws {
        let catchAll = CatchAll(reportingTo: TransportEventSource())
        let messages = try catchAll.listen(BufferPolicy(.dropOldest, messageLimit: 2))
        let batch = (0..<5).map { message(isAcknowledged: true, topic: "\($0)") }
        catchAll.deliver(batch)
        catchAll.end()
        var topics: [String] = []
        for try await message in messages { topics.append(message.topic) }
        #expect(topics == ["3", "4"])
    }

    @Test("What comes again is removed, and leaves the account")
    func removed() {
        let connection = Connection(limit: 8_000)
        let source = connection.source(.dropOldest)
        source.deliver((0..<7).map { _ in message(isAcknowledged: true) })
        #expect(connection.all == [true])
        source.removeWaiting { _ in true }
        #expect(connection.account.byteCount == 0 && connection.all == [true, false])
    }

    @Test("Unacknowledged messages hold the peer back at the limit, until they are taken")
    func acknowledged() async throws {
        let connection = Connection(limit: 8_000)
        let source = connection.source(.dropOldest)
        for _ in 0..<6 { source.deliver([message(isAcknowledged: true)]) }
        #expect(connection.all == [])
        source.deliver([message(isAcknowledged: true)])
        #expect(connection.all == [true])
        var iterator = source.messages.makeAsyncIterator()
        for _ in 0..<7 { #expect(try await iterator.next() != nil) }
        // The consumer may still be working on the last message that it has taken.
        #expect(connection.all == [true])
        source.deliver([message(isAcknowledged: true)])
        _ = try await iterator.next()
        #expect(connection.all == [true, false])
        #expect(connection.account.byteCount < 2_000)
    }

    @Test("Topic, headers and values under keys count, not only the body")
    func everything() {
        let plain = message().memoryByteCount
        let long = String(repeating: "x", count: 10_000)
        #expect(message(topic: long).memoryByteCount >= plain + 9_999)
        var decorated = message()
        decorated.headers = ["name": long]
        #expect(decorated.memoryByteCount >= plain + 10_000)
        decorated[.correlationData] = [UInt8](repeating: 0, count: 10_000)
        #expect(decorated.memoryByteCount >= plain + 20_000)
        decorated[.responseTopic] = long
        #expect(decorated.memoryByteCount >= plain + 30_000)
    }

    @Test(
        "Where no acknowledgement bounds them, messages make room by their policy and hold nothing back",
        arguments: [BufferPolicy.Overflow.dropOldest, .dropNewest]
    )
    func dropped(overflow: BufferPolicy.Overflow) {
        let connection = Connection(limit: 8_000)
        let source = connection.source(overflow)
        source.deliver((0..<100).map { _ in message() })
        for _ in 0..<100 { source.deliver([message()]) }
        #expect(connection.all == [])
        // Three quarters of the limit are for what may be dropped.
        #expect(source.droppedCount == 195)
        #expect(connection.account.byteCount < 7_000)
    }

    /// A stream whose messages make room for others.
    private func holder(
        _ connection: Connection,
        _ overflow: BufferPolicy.Overflow
    ) -> MessageSource {
        let source = connection.source(overflow)
        _ = connection.account.add(MessageSource.holder("t") { source })
        return source
    }

    @Test(
        "The largest stream makes room for a smaller one, by its own policy",
        arguments: [BufferPolicy.Overflow.dropOldest, .dropNewest, .fail]
    )
    func largest(overflow: BufferPolicy.Overflow) async throws {
        let connection = Connection(limit: 80_000)
        let (large, small) = (holder(connection, overflow), holder(connection, .fail))
        for number in 0..<50 {
            var message = message()
            message.headers = ["n": "\(number)"]
            large.deliver([message])
        }
        let kept = 50 - large.droppedCount
        for _ in 0..<10 { small.deliver([message()]) }
        #expect(small.failure == nil && small.droppedCount == 0)
        let dropped = large.droppedCount
        var numbers: [Int] = []
        large.finish()
        var iterator = large.messages.makeAsyncIterator()
        while let message = try? await iterator.next() {
            numbers.append(message.headers.first("n").flatMap(Int.init) ?? -1)
        }
        switch overflow {
        case .dropOldest: #expect(numbers == Array(dropped..<50))
        case .dropNewest: #expect(numbers == Array(0..<(50 - dropped)))
        default: #expect(numbers == [] && large.failure?.code == .slowConsumer)
        }
        #expect(dropped > 50 - kept && connection.all == [])
    }

    @Test("What a failed stream still has makes room before anything else")
    func failedFirst() {
        let connection = Connection(limit: 80_000)
        let (failed, other) = (holder(connection, .fail), holder(connection, .dropOldest))
        failed.deliver((0..<20).map { _ in message() })
        failed.finish(throwing: WaybillError(.slowConsumer, ""))
        for _ in 0..<55 { other.deliver([message()]) }
        #expect(other.droppedCount == 0 && failed.droppedCount == 20)
    }

    @Test("A stream that is to fail fails at the limit of the connection, too")
    func failed() {
        let connection = Connection(limit: 8_000)
        let source = connection.source(.fail)
        source.deliver((0..<100).map { _ in message() })
        #expect(source.failure?.code == .slowConsumer)
    }

    @Test("The end of a loop gives back what it had taken and not used")
    func givenBack() async throws {
        let connection = Connection(limit: 1 << 20)
        let source = connection.source(.holdBack)
        let messages = source.messages
        source.deliver((0..<10).map { _ in message() })
        let all = connection.account.byteCount
        do {
            var iterator = messages.makeAsyncIterator()
            _ = try await iterator.next()
            #expect(connection.account.byteCount == all)
        }
        // The consumer has kept one of ten. The others wait again.
        #expect(connection.account.byteCount == all / 10 * 9)
        messages.cancel()
        #expect(connection.account.byteCount == 0)
    }

    @Test("A large backlog is given back bit by bit while it is worked on")
    func portions() async throws {
        let connection = Connection(limit: 8 << 20)
        let source = connection.source(.holdBack)
        for _ in 0..<7 {
            source.deliver((0..<10).map { _ in large() })
        }
        #expect(connection.all == [true])
        var iterator = source.messages.makeAsyncIterator()
        for _ in 0..<31 { #expect(try await iterator.next() != nil) }
        // The consumer has taken less than half. So much is free that the peer may send again.
        #expect(connection.all == [true, false])
        for _ in 31..<70 { #expect(try await iterator.next() != nil) }
        source.finish()
        #expect(try await iterator.next() == nil)
        #expect(connection.account.byteCount == 0)
    }

    /// A message of about 115,000 bytes.
    private func large() -> Message {
        Message(topic: "t", body: Payload([UInt8](repeating: 0, count: 115_000)))
    }

    @Test("What comes to a subscription that has just ended is dropped and takes nothing")
    func late() async throws {
        let connection = Connection(limit: 8_000)
        let source = connection.source(.dropOldest)
        let messages = source.messages
        var iterator: Messages<Message>.AsyncIterator? = messages.makeAsyncIterator()
        source.deliver([message(isAcknowledged: true), message(isAcknowledged: true)])
        _ = try await iterator?.next()
        messages.cancel()
        iterator = nil
        source.deliver([message(isAcknowledged: true)])
        #expect(connection.account.byteCount == 0)
    }

    @Test("What was dropped to make room is not given back twice")
    func droppedPlaces() async throws {
        let connection = Connection(limit: 1 << 20)
        let source = MessageSource(
            policy: BufferPolicy(.dropOldest, messageLimit: 100),
            account: connection.account
        )
        source.deliver((0..<110).map { _ in message() })
        let messages = source.messages
        do {
            var iterator = messages.makeAsyncIterator()
            _ = try await iterator.next()
        }
        let each = message().memoryByteCount
        #expect(connection.account.byteCount == 99 * each)
        messages.cancel()
        #expect(connection.account.byteCount == 0)
    }
}
