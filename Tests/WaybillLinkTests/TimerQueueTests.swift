import Testing
import WaybillLink
import WireCore

@Suite("Timer queue") struct TimerQueueTests {
    @Test("Actions come in the order of their deadlines, equal ones in the order of adding")
    func order() {
        var queue = TimerQueue()
        let log = Locked([Int]())
        for (index, deadline) in [5, 1, 4, 1, 3, 2].enumerated() {
            _ = queue.add(at: WireInstant(nanoseconds: Int64(deadline))) {
                log.withLock { $0.append(index) }
            }
        }
        while let action = queue.takeDue(at: WireInstant(nanoseconds: 4)) { action() }
        #expect(log.withLock { $0 } == [1, 3, 5, 4, 2])
        #expect(queue.nextDeadline == WireInstant(nanoseconds: 5))
        #expect(queue.count == 1)
    }

    @Test("Cancelled timers neither fire nor pile up")
    func cancellation() {
        var queue = TimerQueue()
        let fired = Locked(0)
        for round in 0..<10_000 {
            let token = queue.add(at: WireInstant(nanoseconds: Int64(round))) {
                fired.withLock { $0 += 1 }
            }
            if round % 100 != 0 { queue.cancel(token) }
        }
        #expect(queue.count == 100)
        while let action = queue.takeDue(at: WireInstant(nanoseconds: .max)) { action() }
        #expect(fired.withLock { $0 } == 100)
        #expect(queue.nextDeadline == nil)
    }
}

@Suite("Flush pacer") struct FlushPacerTests {
    /// Each row: the number of messages in each flush, the microseconds since the last flush, whether the peer has
    /// sent bytes, and whether the next message should wait.
    @Test(
        "A lone message and a conversation leave at once, a burst is gathered",
        arguments: [
            ([1], 500, false, false), ([1], 99, false, false), ([1, 1], 99, false, true),
            ([1, 1], 101, false, false), ([1, 1], 99, true, false), ([0], 101, false, false),
            ([4], 99, false, false),
            ([5], 99, true, true), ([5], 999, false, true), ([5], 1_001, false, false),
        ]
    )
    func decisions(flushes: [Int], microseconds: Int64, spoken: Bool, gathers: Bool) {
        var pacer = FlushPacer()
        var now = WireInstant(nanoseconds: 1_000_000_000)
        for messages in flushes {
            now = now.advanced(by: .microseconds(10))
            pacer.noteFlush(messages: messages, at: now)
        }
        if spoken { pacer.noteReceived() }
        now = now.advanced(by: .microseconds(microseconds))
        #expect(pacer.shouldGather(calls: 1, at: now) == gathers)
    }

    @Test("Many calls at once are many conversations: gathered")
    func manyCalls() {
        var pacer = FlushPacer()
        let start = WireInstant(nanoseconds: 1_000_000_000)
        let soon = start.advanced(by: .microseconds(99))
        pacer.noteFlush(messages: 1, at: start)
        #expect(!pacer.shouldGather(calls: 4, at: soon))
        #expect(pacer.shouldGather(calls: 5, at: soon))
        #expect(!pacer.shouldGather(calls: 5, at: start.advanced(by: .microseconds(101))))
        pacer.noteReceived()
        #expect(!pacer.shouldGather(calls: 5, at: soon))
        pacer.noteFlush(messages: 2, at: start)
        #expect(!pacer.shouldGather(calls: 4, at: soon))
        #expect(pacer.shouldGather(calls: 5, at: start.advanced(by: .microseconds(999))))
    }

    @Test("The very first message leaves at once")
    func first() {
        #expect(!FlushPacer().shouldGather(calls: 0, at: .zero))
    }
}
