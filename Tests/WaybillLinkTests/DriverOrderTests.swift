import Testing
import WaybillLink
import WireCore
import WireTestSupport

@Suite("Order and time of a driver", .timeLimit(.minutes(30))) struct DriverOrderTests {
    #if os(Linux)
        @Test("Senders that wait are woken first come, first served", arguments: [false, true])
        func waitingSenders(isClosed: Bool) async throws {
            let pair = ByteStreamPair(capacity: 65_536)
            let timers = ManualTimers()
            let left = Driver(core: LineCore(), stream: pair.first, timers: timers)
            let right = Driver(core: LineCore(), stream: pair.second, timers: timers)
            left.start(Recorder().handler)
            right.start(Recorder().handler)
            right.setReading(false)
            left.withCore { core, _ in core.send(String(repeating: "x", count: 1 << 20)) }

            let order = WakingOrder()
            order.begin(100) { _ in try? await left.waitUntilDrained() }
            if isClosed { left.close() } else { right.setReading(true) }
            let woken = try await order.woken
            #expect(woken == Array(0..<100))
        }
    #endif

    /// A stream that takes all bytes, and gathers them when the driver asks it to.
    private final class GatheringStream: ByteStream {
        let writeCount = Locked(0)

        func start(_ receiver: any ByteStreamReceiver) {}
        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            if !bytes.isEmpty { writeCount.withLock { $0 += 1 } }
            return bytes.count
        }
        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            .nothing
        }
        func scheduleFlush() -> Bool { true }
        func setReading(_ isReading: Bool) {}
        func readAgain() {}
        func finishWriting() {}
        func close() {}
    }

    /// A clock whose coarse time never changes.
    private final class LaggingTimers: TimerSource {
        let precise = Locked(WireInstant.zero)

        var now: WireInstant { .zero }
        var preciseNow: WireInstant { precise.withLock { $0 } }

        func scheduleTimer(
            at deadline: WireInstant,
            _ action: @escaping @Sendable () -> Void
        ) -> UInt64 { 1 }

        func cancelTimer(_ token: UInt64) {}
    }

    @Test("Messages gather by the driver's own clock, in its precise form")
    func gathering() {
        let stream = GatheringStream()
        let timers = LaggingTimers()
        let driver = Driver(core: LineCore(), stream: stream, timers: timers)
        driver.start(Recorder().handler)
        // By the precise clock the messages are 1 ms apart, so none of them waits for the next.
        for _ in 0..<1_000 {
            timers.precise.withLock { $0 = $0.advanced(by: .milliseconds(1)) }
            driver.withCore { core, _ in core.send("x") }
        }
        #expect(stream.writeCount.withLock { $0 } == 1_000)
        // By the precise clock they all come at once: the first one leaves, the others are gathered.
        for _ in 0..<1_000 { driver.withCore { core, _ in core.send("x") } }
        #expect(stream.writeCount.withLock { $0 } == 1_001)
    }
}
