import Testing
import WaybillLink
import WireCore

@Suite("What holds a driver back", .timeLimit(.minutes(30))) struct DriverHoldTests {
    /// A stream whose socket is full and whose close is still queued, as it is on an event loop.
    private final class StuckStream: ByteStream {
        let closeCount = Locked(0)

        func start(_ receiver: any ByteStreamReceiver) {}
        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int { 0 }
        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            .nothing
        }
        func scheduleFlush() -> Bool { false }
        func setReading(_ isReading: Bool) {}
        func readAgain() {}
        func finishWriting() {}
        func close() { closeCount.withLock { $0 += 1 } }
    }

    /// A clock that runs its timers only in `advance(by:)`.
    private final class NotedTimers: TimerSource {
        private let state = Locked((now: WireInstant.zero, timers: TimerQueue()))

        var now: WireInstant { state.withLock { $0.now } }
        var count: Int { state.withLock { $0.timers.count } }

        func scheduleTimer(
            at deadline: WireInstant,
            _ action: @escaping @Sendable () -> Void
        ) -> UInt64 {
            state.withLock { $0.timers.add(at: deadline, action) }
        }

        func cancelTimer(_ token: UInt64) { state.withLock { _ = $0.timers.cancel(token) } }

        /// Moves the clock and runs each timer that is due at the new time once.
        func advance(by duration: Duration) {
            let due = state.withLock { state in
                state.now = state.now.advanced(by: duration)
                return state.timers.takeDueTokens(at: state.now)
            }
            for token in due { state.withLock { $0.timers.take(token) }?() }
        }
    }

    @Test(
        "A peer that does not read is cut off once, and no timer is set for a time that has passed"
    )
    func cutOnce() {
        let stream = StuckStream()
        let timers = NotedTimers()
        let driver = Driver(core: LineCore(), stream: stream, timers: timers)
        driver.start(Recorder().handler)
        driver.withCore(.immediate) { core, _ in
            core.send("unread")
            core.isFinished = true
        }
        timers.advance(by: .seconds(5))
        #expect(stream.closeCount.withLock { $0 } == 1)
        // The stream will report its end. Until then the driver has nothing to do.
        #expect(timers.count == 0)
    }

    // MARK: A core that stops half-way

    @Test("What a core leaves undecoded follows, in order, and before the end of the stream")
    func halfWay() {
        let pair = ByteStreamPair()
        let timers = ManualTimers()
        let heard = Recorder()
        let writer = Driver(core: LineCore(), stream: pair.first, timers: timers)
        let reader = Driver(core: LineCore(lineLimit: 3), stream: pair.second, timers: timers)
        let lines = (0..<100).map { "line \($0)" }
        writer.start(Recorder().handler)
        writer.withCore { core, _ in
            for line in lines { core.send(line) }
            core.isFinished = true
        }
        reader.start(heard.handler)
        #expect(heard.events == lines.map { .line($0) } + [.ended])
        #expect(heard.ends.count == 1)
    }

    @Test("A reader that stops in the middle of a read gets the rest when it goes on")
    func stopsHalfWay() {
        let pair = ByteStreamPair()
        let timers = ManualTimers()
        let counts = Locked([Int]())
        let writer = Driver(core: LineCore(), stream: pair.first, timers: timers)
        let reader = Driver(core: LineCore(lineLimit: 10), stream: pair.second, timers: timers)
        writer.start(Recorder().handler)
        writer.withCore { core, _ in for _ in 0..<35 { core.send("x") } }
        reader.start(
            .init(
                receive: { [weak reader] events in
                    counts.withLock { $0.append(events.count) }
                    reader?.setReading(false)
                },
                end: { _ in }
            )
        )
        #expect(counts.withLock { $0 } == [10])
        for _ in 0..<3 { reader.setReading(true) }
        #expect(counts.withLock { $0 } == [10, 10, 10, 5])
    }

    /// A stream that has ended, with bytes that its receiver has not read yet.
    private final class EndedStream: ByteStream {
        let bytes: Locked<[UInt8]>

        init(_ text: String) { bytes = Locked(Array(text.utf8)) }

        func start(_ receiver: any ByteStreamReceiver) {}
        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int { throw .closed }
        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            let found = bytes.withLock { bytes in
                defer { bytes = [] }
                return bytes
            }
            space.copyBytes(from: found)
            return found.isEmpty ? .nothing : .bytes(found.count)
        }
        func scheduleFlush() -> Bool { false }
        func setReading(_ isReading: Bool) {}
        func readAgain() {}
        func finishWriting() {}
        func close() {}
    }

    @Test("An end waits until the reader has taken what came before, or closes")
    func delayedEnd() {
        for closes in [false, true] {
            let stream = EndedStream("1\n2\n3\n4\n5\n")
            let heard = Recorder()
            let driver = Driver(
                core: LineCore(lineLimit: 2),
                stream: stream,
                timers: ManualTimers()
            )
            driver.start(
                .init(
                    receive: { [weak driver] events in
                        heard.hear(events)
                        driver?.setReading(false)
                    },
                    end: { heard.hearEnd($0) }
                )
            )
            driver.streamIsReadable()
            driver.streamDidEnd(.endOfStream)
            #expect(heard.events == [.line("1"), .line("2")])
            #expect(heard.ends.isEmpty)
            if closes {
                driver.close()
                #expect(heard.ends == [.endOfStream])
                continue
            }
            driver.setReading(true)
            #expect(heard.events.prefix(4) == (1...4).map { .line("\($0)") }[...])
            #expect(heard.ends.isEmpty)
            driver.setReading(true)
            #expect(heard.events == (1...5).map { .line("\($0)") } + [.ended])
            #expect(heard.ends == [.endOfStream])
        }
    }

    // MARK: The account

    /// A writer, and a reader with an account.
    private struct Two {
        let account = MemoryAccount(limit: 100)
        let heard = Recorder()
        let writer: Driver<LineCore>
        let reader: Driver<LineCore>

        init(lineLimit: Int = .max, isOpening: Bool = false) {
            let pair = ByteStreamPair()
            let timers = ManualTimers()
            writer = Driver(core: LineCore(), stream: pair.first, timers: timers)
            reader = Driver(
                core: LineCore(lineLimit: lineLimit),
                stream: pair.second,
                timers: timers,
                account: account,
                isOpening: isOpening
            )
            writer.start(Recorder().handler)
            reader.start(heard.handler)
        }

        func send(_ line: String) { writer.withCore { core, _ in core.send(line) } }
    }

    @Test(
        "While the account is full nothing is read, whatever the stream says; then reading goes on"
    )
    func fullAccount() {
        let two = Two()
        two.send("before")
        two.account.charge(100)
        two.send("while full")
        two.reader.streamIsReadable()
        #expect(two.heard.events == [.line("before")])
        two.account.release(30)
        #expect(two.heard.events == [.line("before")])
        two.account.release(5)
        #expect(two.heard.events == [.line("before"), .line("while full")])
    }

    @Test(
        "An account that is full from the start is heeded, and one that fills half-way through a read"
    )
    func fullFromTheStart() {
        let two = Two(lineLimit: 2)
        two.account.charge(100)
        for number in 1...3 { two.send("\(number)") }
        #expect(two.heard.events == [])
        two.account.release(100)
        #expect(two.heard.events == (1...3).map { .line("\($0)") })
    }

    @Test("While a connection is opened the reserve may be used, and no more than that")
    func opening() {
        let two = Two(isOpening: true)
        // The account has a capacity of 88 and a reserve of 12.
        two.account.charge(90)
        two.send("an answer")
        #expect(two.heard.events == [.line("an answer")])
        two.account.charge(10)
        two.send("too much")
        #expect(two.heard.events == [.line("an answer")])
        two.account.release(5)
        two.reader.endOpening()
        #expect(two.heard.events == [.line("an answer")])
        two.account.release(95)
        #expect(two.heard.events == [.line("an answer"), .line("too much")])
    }

    @Test("An end that this side has brought about waits for nothing that is left to decode")
    func endOfOurOwn() {
        let stream = EndedStream("1\n2\n3\n")
        let heard = Recorder()
        let driver = Driver(core: LineCore(lineLimit: 2), stream: stream, timers: ManualTimers())
        driver.start(
            .init(
                receive: { [weak driver] events in
                    heard.hear(events)
                    driver?.setReading(false)
                },
                end: { heard.hearEnd($0) }
            )
        )
        driver.streamIsReadable()
        driver.close()
        // The stream reports its end later, from the loop.
        driver.streamDidEnd(nil)
        #expect(heard.ends == [nil])
    }

    /// A peer that reads no answer yet, the echo at the other end, and the answers that the peer gets.
    private func echoes(
        _ account: MemoryAccount
    ) -> (Driver<LineCore>, Driver<LineCore>, Recorder) {
        let pair = ByteStreamPair(capacity: 1 << 18)
        let timers = ManualTimers()
        let flood = Driver(core: LineCore(), stream: pair.first, timers: timers)
        let echo = Driver(
            core: LineCore(echoes: true),
            stream: pair.second,
            timers: timers,
            account: account
        )
        let answers = Recorder()
        flood.start(answers.handler)
        echo.start(Recorder().handler)
        flood.setReading(false)
        return (flood, echo, answers)
    }

    @Test("Reading goes on when the answers have left, however full the account was meanwhile")
    func answersThatLeave() {
        let account = MemoryAccount(limit: 8 << 20)
        let (flood, echo, answers) = echoes(account)
        account.charge(6 << 20)
        let line = String(repeating: "x", count: 65_535)
        for _ in 0..<64 { flood.withCore { core, _ in core.send(line) } }
        #expect(echo.unsentByteCount > 1 << 20)
        flood.setReading(true)
        account.release(6 << 20)
        #expect(answers.events.count == 64)
    }

    @Test("What this side sends by itself holds no peer back")
    func ownSends() {
        let pair = ByteStreamPair(capacity: 1 << 18)
        let timers = ManualTimers()
        let heard = Recorder()
        let peer = Driver(core: LineCore(), stream: pair.first, timers: timers)
        let sender = Driver(
            core: LineCore(),
            stream: pair.second,
            timers: timers,
            account: MemoryAccount(limit: 1 << 20)
        )
        peer.start(Recorder().handler)
        sender.start(heard.handler)
        peer.setReading(false)
        let megabyte = String(repeating: "x", count: 1 << 20)
        for _ in 0..<4 { sender.withCore { core, _ in core.send(megabyte) } }
        peer.withCore { core, _ in core.send("heard") }
        #expect(heard.events == [.line("heard")])
    }

    @Test("A peer that floods and reads no answer is not read from beyond the account")
    func unreadAnswers() {
        let (flood, echo, answers) = echoes(MemoryAccount(limit: 8 << 20))
        let line = String(repeating: "x", count: 65_535)
        var most = 0
        for _ in 0..<320 {
            flood.withCore { core, _ in core.send(line) }
            most = max(most, echo.unsentByteCount)
        }
        #expect(most >= 3 << 20)
        #expect(most <= 4 << 20)
        flood.setReading(true)
        #expect(answers.events.count == 320)
        #expect(echo.unsentByteCount == 0)
    }
}
