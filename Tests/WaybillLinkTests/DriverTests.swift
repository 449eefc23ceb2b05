import Testing
import WaybillLink
import WireCore

@Suite("Driver over a pair in memory", .timeLimit(.minutes(30))) struct DriverTests {
    private struct Two {
        let pair: ByteStreamPair
        let timers = ManualTimers()
        let left: Driver<LineCore>
        let right: Driver<LineCore>
        let heardLeft = Recorder()
        let heardRight = Recorder()

        init(capacity: Int = 1 << 20, rightEchoes: Bool = false) {
            pair = ByteStreamPair(capacity: capacity)
            left = Driver(
                core: LineCore(),
                stream: pair.first,
                timers: timers
            )
            right = Driver(
                core: LineCore(echoes: rightEchoes),
                stream: pair.second,
                timers: timers
            )
            left.start(heardLeft.handler)
            right.start(heardRight.handler)
        }
    }

    @Test("What one side sends the other hears, in order, and answers come back")
    func conversation() {
        let two = Two(rightEchoes: true)
        for line in ["a", "b", "c"] { two.left.withCore { core, _ in core.send(line) } }
        #expect(two.heardRight.events == [.line("a"), .line("b"), .line("c")])
        #expect(two.heardLeft.events == [.line("a"), .line("b"), .line("c")])
    }

    @Test("After its end nothing keeps a driver, although its account lives on")
    func released() {
        let account = MemoryAccount(limit: 800)
        weak var driver: Driver<LineCore>?
        do {
            let pair = ByteStreamPair()
            let made = Driver(
                core: LineCore(),
                stream: pair.first,
                timers: ManualTimers(),
                account: account
            )
            driver = made
            made.start(Recorder().handler)
            made.close()
        }
        #expect(driver == nil)
        withExtendedLifetime(account) {}
    }

    @Test("Bytes that the stream does not take at once follow when it drains")
    func backPressure() {
        let two = Two(capacity: 3)
        let long = String(repeating: "x", count: 1_000)
        two.left.withCore { core, _ in core.send(long) }
        two.left.withCore { core, _ in core.send("tail") }
        #expect(two.heardRight.events == [.line(long), .line("tail")])
    }

    @Test("A paused reader holds the sender back above the high-water mark")
    func highWaterMark() async throws {
        let two = Two(capacity: 65_536)
        two.right.setReading(false)
        let chunk = String(repeating: "y", count: 1 << 19)
        #expect(two.left.send { core, _ in core.send(chunk) }.pause == .none)
        #expect(two.left.send { core, _ in core.send(chunk) }.pause == .none)
        #expect(two.left.send { core, _ in core.send(chunk) }.pause == .drain)

        let waiter = Task { try await two.left.waitUntilDrained() }
        waiter.cancel()
        await #expect(throws: CancellationError.self) { try await waiter.value }

        async let drained: Void = two.left.waitUntilDrained()
        two.right.setReading(true)
        try await drained
        #expect(two.heardRight.events.count == 3)
    }

    @Test("A sender without room whose connection has ended does not wait, and learns of the loss")
    func lostWithoutRoom() async throws {
        let two = Two(capacity: 65_536)
        two.right.setReading(false)
        let chunk = String(repeating: "y", count: 2 << 20)
        #expect(two.left.send { core, _ in core.send(chunk) }.pause == .drain)
        two.pair.reset()
        await #expect(throws: LinkError.endOfStream) { try await two.left.wait(for: .drain) }
    }

    @Test(
        "A peer that takes what waited is alive; one that takes nothing, or only what came later, is not said to be"
    )
    func progress() {
        let two = Two()
        func look(after body: () -> Void = {}) -> Bool {
            body()
            let before = two.heardLeft.events.count
            two.left.withCore { core, now in core.deadline = now.advanced(by: .seconds(1)) }
            two.timers.advance(by: .seconds(1))
            return two.heardLeft.events.dropFirst(before).first == .progress
        }
        two.right.setReading(false)
        two.left.withCore { core, _ in core.send("a long line") }
        #expect(!look())
        #expect(!look())
        #expect(look { two.right.setReading(true) })
        #expect(!look())
        #expect(!look { two.left.withCore { core, _ in core.send("a ping") } })
        #expect(two.heardRight.events == [.line("a long line"), .line("a ping")])
    }

    @Test("A sender that never has to wait lets others run each 256 messages")
    func turns() {
        let two = Two()
        let pauses = (1...1_024).map { _ in two.left.send { core, _ in core.send("x") }.pause }
        #expect(pauses.indices.filter { pauses[$0] == .turn } == [255, 511, 767, 1_023])
        #expect(!pauses.contains(.drain))
    }

    /// A stream whose driver gets another message during each write.
    private final class FloodedStream: ByteStream {
        struct State: Sendable {
            var add: (@Sendable () -> Void)?
            var writeCount = 0
            var flushesAskedFor = 0
            var isClosed = false
        }

        let state = Locked(State())
        private let gathers: Bool

        init(gathers: Bool = true) {
            self.gathers = gathers
        }

        func start(_ receiver: any ByteStreamReceiver) {}

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            let add = state.withLock { state in
                state.writeCount += 1
                return state.add
            }
            add?()
            return bytes.count
        }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            .nothing
        }

        func scheduleFlush() -> Bool {
            state.withLock { $0.flushesAskedFor += 1 }
            return gathers
        }

        func setReading(_ isReading: Bool) {}
        func readAgain() {}
        func finishWriting() {}
        func close() { state.withLock { $0.isClosed = true } }
    }

    @Test("A flush over a stream that does not gather goes on to the end, and the last one closes")
    func flushedToTheEnd() {
        let stream = FloodedStream(gathers: false)
        let driver = Driver(core: LineCore(), stream: stream, timers: ManualTimers())
        stream.state.withLock { state in
            state.add = { [weak driver, weak stream] in
                let count = stream?.state.withLock { $0.writeCount } ?? 0
                driver?.withCore(.immediate) { core, _ in
                    if count < 10 { core.send("more") } else { core.isFinished = true }
                }
            }
        }
        driver.withCore(.immediate) { core, _ in core.send("first") }
        #expect(stream.state.withLock { $0.writeCount } == 10)
        #expect(driver.unsentByteCount == 0)
        #expect(stream.state.withLock { $0.isClosed })
    }

    @Test("A flush does not go on for as long as others add to it")
    func floodedFlush() {
        let stream = FloodedStream()
        let driver = Driver(core: LineCore(), stream: stream, timers: ManualTimers())
        stream.state.withLock {
            $0.add = { [weak driver] in
                driver?.withCore(.immediate) { core, _ in core.send("more") }
            }
        }
        driver.withCore(.immediate) { core, _ in core.send("first") }
        #expect(stream.state.withLock { ($0.writeCount, $0.flushesAskedFor) } == (4, 1))
        #expect(driver.unsentByteCount == 5)
        // The rest leaves with the next flush.
        stream.state.withLock { $0.add = nil }
        driver.withCore { core, _ in core.isFinished = true }
        #expect(driver.unsentByteCount == 0)
        #expect(stream.state.withLock { $0.writeCount } == 5)
        #expect(stream.state.withLock { $0.isClosed })
    }

    @Test("A peer that does not read what is left when the core is done is cut off after a time")
    func deafPeer() {
        let two = Two(capacity: 10)
        two.right.setReading(false)
        two.left.withCore { core, _ in
            core.send("more than the stream takes")
            core.isFinished = true
        }
        two.timers.advance(by: .milliseconds(4_999))
        #expect(two.heardLeft.ends.isEmpty)
        two.timers.advance(by: .milliseconds(1))
        #expect(two.heardLeft.ends == [nil])
        #expect(two.timers.count == 0)
    }

    @Test("A receiver that stops reading in its turn is not read for")
    func pausedInTurn() {
        let two = Two(capacity: 1 << 20)
        let counts = Locked<[Int]>([])
        let pair = ByteStreamPair()
        let timers = ManualTimers()
        let reader = Driver(core: LineCore(), stream: pair.second, timers: timers)
        let writer = Driver(core: LineCore(), stream: pair.first, timers: timers)
        writer.start(two.heardLeft.handler)
        let line = String(repeating: "z", count: 1_023)
        writer.withCore { core, _ in for _ in 0..<512 { core.send(line) } }
        reader.start(
            .init(
                receive: { [weak reader] events in
                    counts.withLock { $0.append(events.count) }
                    reader?.setReading(false)
                },
                end: { _ in }
            )
        )
        // One read takes 64 KiB.
        #expect(counts.withLock { $0 } == [64])
        while counts.withLock({ $0.reduce(0, +) }) < 512 { reader.setReading(true) }
        #expect(counts.withLock { $0 } == Array(repeating: 64, count: 8))
    }

    @Test("The core is told the time when its deadline has come, and an earlier deadline wins")
    func deadlines() {
        let two = Two()
        two.left.withCore { core, now in core.deadline = now.advanced(by: .seconds(60)) }
        two.left.withCore { core, now in core.deadline = now.advanced(by: .seconds(5)) }
        two.timers.advance(by: .seconds(4))
        #expect(two.heardLeft.events.isEmpty)
        two.timers.advance(by: .seconds(1))
        #expect(two.heardLeft.events == [.tick(WireInstant.zero.advanced(by: .seconds(5)))])
        #expect(two.timers.count == 0)
    }

    @Test("The end is told once, after the last event")
    func end() {
        let two = Two()
        two.left.withCore { core, _ in
            core.send("bye")
            core.isFinished = true
        }
        #expect(two.heardRight.events == [.line("bye"), .ended])
        #expect(two.heardRight.ends == [.endOfStream])
        #expect(two.heardLeft.ends == [nil])
        two.left.withCore { core, _ in core.send("too late") }
        two.left.close()
        #expect(two.heardLeft.ends == [nil])
        #expect(two.heardRight.events == [.line("bye"), .ended])
    }

    @Test("A reset is told to both sides with its cause, and ends their timers")
    func reset() {
        let two = Two()
        two.left.withCore { core, now in core.deadline = now.advanced(by: .seconds(60)) }
        two.pair.reset()
        #expect(two.heardLeft.ends == [.reset])
        #expect(two.heardRight.ends == [.reset])
        #expect(two.timers.count == 0)
    }

    /// A stream whose peer has sent bytes and gone: it can be read and cannot be written.
    private final class GoneStream: ByteStream {
        private let unread = Locked(Array("why\n".utf8))
        private let receiver = Locked<(any ByteStreamReceiver)?>(nil)

        func start(_ receiver: any ByteStreamReceiver) {
            self.receiver.withLock { $0 = receiver }
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int { throw .reset }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            let bytes = unread.withLock { unread in
                defer { unread = [] }
                return unread
            }
            guard !bytes.isEmpty else { throw .reset }
            space.copyBytes(from: bytes)
            return .bytes(bytes.count)
        }

        func scheduleFlush() -> Bool { false }
        func setReading(_ isReading: Bool) {}
        func readAgain() { receiver.withLock { $0 }?.streamIsReadable() }
        func finishWriting() {}
        func close() {}
    }

    @Test(
        "What the peer said before it went is heard, although it shows first in a write that fails"
    )
    func lastWords() {
        let heard = Recorder()
        let driver = Driver(core: LineCore(), stream: GoneStream(), timers: ManualTimers())
        driver.start(heard.handler)
        driver.withCore(.immediate) { core, _ in core.send("x") }
        #expect(heard.events == [.line("why"), .ended])
        #expect(heard.ends == [.reset])
    }

    /// A stream on which reading resumes while a write fails. It never reports anything by itself.
    private final class HastyStream: ByteStream {
        private struct State: Sendable {
            var receiver: (any ByteStreamReceiver)?
            var isReading = false
            var beforeReading: (@Sendable () -> Void)?
        }

        private let state = Locked(State())

        init(beforeReading: @escaping @Sendable () -> Void) {
            state.withLock { $0.beforeReading = beforeReading }
        }

        func start(_ receiver: any ByteStreamReceiver) {
            state.withLock { $0.receiver = receiver }
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int { throw .reset }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            .nothing
        }

        func scheduleFlush() -> Bool { false }

        func setReading(_ isReading: Bool) {
            let before = isReading ? state.withLock { $0.beforeReading.take() } : nil
            before?()
            state.withLock { $0.isReading = isReading }
        }

        func readAgain() {
            state.withLock { $0.isReading ? $0.receiver : nil }?.streamIsReadable()
        }

        func finishWriting() {}
        func close() {}
    }

    @Test("A write that fails just as reading goes on ends the connection, too")
    func failsAsReadingGoesOn() {
        let heard = Recorder()
        let writer = Locked<Driver<LineCore>?>(nil)
        let stream = HastyStream {
            writer.withLock { $0 }?.withCore(.immediate) { core, _ in core.send("x") }
        }
        let driver = Driver(core: LineCore(), stream: stream, timers: ManualTimers())
        writer.withLock { $0 = driver }
        driver.start(heard.handler)
        driver.setReading(false)
        driver.setReading(true)
        #expect(heard.ends == [.reset])
    }

    @Test("Concurrent senders keep their own order and lose nothing")
    func concurrentSenders() async {
        let two = Two()
        await withTaskGroup { group in
            for sender in 0..<4 {
                group.addTask {
                    for number in 0..<500 {
                        two.left.withCore { core, _ in core.send("\(sender) \(number)") }
                    }
                }
            }
        }
        // The thread that carried the last bytes may still be delivering them.
        await two.heardRight.wait(events: 2_000)
        var next = [0, 0, 0, 0]
        for case .line(let line) in two.heardRight.events {
            let parts = line.split(separator: " ").compactMap { Int($0) }
            #expect(next[parts[0]] == parts[1])
            next[parts[0]] += 1
        }
        #expect(next == [500, 500, 500, 500])
    }
}
