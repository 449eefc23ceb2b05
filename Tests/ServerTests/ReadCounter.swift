import WaybillLink
import WaybillTesting
import WireCore

/// Dials real connections on a clock that a test moves, and counts the reads that were handled.
///
/// A read counts when the receiver has handled it. If the clock moved earlier, a timeout could expire although bytes
/// had arrived.
final class ReadCounter: Dialer {
    /// A stream that counts its reads.
    private final class Stream: ByteStream, ByteStreamReceiver {
        private struct State: Sendable {
            var receiver: (any ByteStreamReceiver)?
            var hasRead = false
        }

        private let base: any ByteStream
        private let counter: ReadCounter
        private let state = Locked(State())

        init(_ base: any ByteStream, _ counter: ReadCounter) {
            self.base = base
            self.counter = counter
        }

        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            let outcome = try base.read(into: space)
            if case .bytes = outcome { state.withLock { $0.hasRead = true } }
            return outcome
        }

        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try base.write(bytes)
        }

        func start(_ receiver: any ByteStreamReceiver) {
            state.withLock { $0.receiver = receiver }
            base.start(self)
        }

        func scheduleFlush() -> Bool { base.scheduleFlush() }
        func setReading(_ isReading: Bool) { base.setReading(isReading) }
        func readAgain() { base.readAgain() }
        func finishWriting() { base.finishWriting() }
        func close() { base.close() }

        // MARK: The stream below

        private var receiver: (any ByteStreamReceiver)? { state.withLock { $0.receiver } }

        func streamIsReadable() {
            receiver?.streamIsReadable()
            let hasRead = state.withLock { state in
                defer { state.hasRead = false }
                return state.hasRead
            }
            if hasRead { counter.reads.withLock { $0 += 1 } }
        }

        func streamIsWritable() { receiver?.streamIsWritable() }
        func streamShouldFlush() { receiver?.streamShouldFlush() }

        func streamDidEnd(_ error: LinkError?) {
            state.withLock { $0.receiver.take() }?.streamDidEnd(error)
        }
    }

    let clock = ManualClock()
    private let reads = Locked(0)
    private let dials = Locked(0)

    /// The number of reads that were handled.
    var count: Int { reads.withLock { $0 } }

    /// The number of connections that were dialled.
    var dialCount: Int { dials.withLock { $0 } }

    /// An environment with this dialer and the clock that the test moves.
    var environment: LinkEnvironment {
        let timers = clock.linkTimers
        return LinkEnvironment(
            dialer: self,
            clock: timers,
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
