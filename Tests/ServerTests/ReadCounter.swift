import WaybillLink
import WaybillTesting
import WireCore

/// Real connections on a clock that a test moves, and how often something was read from them.
final class ReadCounter: Dialer {
    /// A stream that counts what is read.
    private final class Stream: ByteStream {
        private let base: any ByteStream
        private let counter: ReadCounter

        init(_ base: any ByteStream, _ counter: ReadCounter) {
            self.base = base
            self.counter = counter
        }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            let outcome = try base.read(into: space)
            if case .bytes = outcome { counter.reads.withLock { $0 += 1 } }
            return outcome
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try base.write(bytes)
        }

        func start(_ receiver: any ByteStreamReceiver) { base.start(receiver) }
        func scheduleFlush() -> Bool { base.scheduleFlush() }
        func setReading(_ isReading: Bool) { base.setReading(isReading) }
        func readAgain() { base.readAgain() }
        func finishWriting() { base.finishWriting() }
        func close() { base.close() }
    }

    let clock = ManualClock()
    private let reads = Locked(0)
    private let dials = Locked(0)

    /// How often something was read.
    var count: Int { reads.withLock { $0 } }

    /// How many connections were asked for.
    var dialCount: Int { dials.withLock { $0 } }

    /// Links over this dialer, with the clock that the test moves.
    var environment: LinkEnvironment {
        let timers = clock.linkTimers
        return LinkEnvironment(
            dialer: self,
            makeTimers: { () throws(LinkError) in timers },
            random: { 0 }
        )
    }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        dials.withLock { $0 += 1 }
        let stream = try await LinkEnvironment.system.dialer.dial(
            endpoint,
            timeout: timeout,
            timers: timers
        )
        return Stream(stream, self)
    }
}
