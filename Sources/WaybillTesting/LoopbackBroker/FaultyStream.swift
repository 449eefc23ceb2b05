import WaybillLink
import WireCore

/// A stream that is slow to read, or writes in small pieces.
final class FaultyStream: ByteStream, ByteStreamReceiver {
    private let base: any ByteStream
    private let faults: LoopbackFaults
    private let timers: any TimerSource
    private let receiver = Locked<(any ByteStreamReceiver)?>(nil)

    init(_ base: any ByteStream, faults: LoopbackFaults, timers: any TimerSource) {
        self.base = base
        self.faults = faults
        self.timers = timers
    }

    func start(_ receiver: any ByteStreamReceiver) {
        self.receiver.withLock { $0 = receiver }
        base.start(self)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        guard let limit = faults.splitsWrites, bytes.count > max(limit, 1) else {
            return try base.write(bytes)
        }
        let piece = UnsafeRawBufferPointer(rebasing: bytes.prefix(max(limit, 1)))
        let written = try base.write(piece)
        _ = timers.scheduleTimer(at: timers.now.advanced(by: .microseconds(200))) { [weak self] in
            self?.streamIsWritable()
        }
        return written
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        try base.read(into: space)
    }

    // A write that is to be split must not be gathered by the base stream.
    func scheduleFlush() -> Bool { false }

    func setReading(_ isReading: Bool) { base.setReading(isReading) }

    func readAgain() { base.readAgain() }

    func finishWriting() { base.finishWriting() }

    func close() { base.close() }

    func abandon() { base.abandon() }

    func streamIsReadable() {
        guard faults.delay > .zero else { return forward { $0.streamIsReadable() } }
        base.setReading(false)
        _ = timers.scheduleTimer(at: timers.now.advanced(by: faults.delay)) { [weak self] in
            self?.base.setReading(true)
            self?.forward { $0.streamIsReadable() }
        }
    }

    func streamIsWritable() { forward { $0.streamIsWritable() } }

    func streamShouldFlush() { forward { $0.streamShouldFlush() } }

    func streamDidEnd(_ error: LinkError?) {
        let receiver = receiver.withLock { $0.take() }
        receiver?.streamDidEnd(error)
    }

    private func forward(_ body: (any ByteStreamReceiver) -> Void) {
        if let receiver = receiver.withLock({ $0 }) { body(receiver) }
    }
}
