import WaybillLink
import WireCore

/// One end of a simulated connection: a socket that the world's loop watches.
///
/// `@unchecked Sendable`, because: only the thread that simulates touches it.
final class SimulatedStream: ByteStream, @unchecked Sendable {
    /// What the loop has to tell the receiver.
    private struct Signals {
        var isWritable = false
        var mustFlush = false
        var isReadable = false
        var hasEnded = false
    }

    private let line: SimulatedLine
    private let isServer: Bool
    weak var peer: SimulatedStream?
    var direction = SimulatedLine.Direction()

    private var receiver: (any ByteStreamReceiver)?
    private var inbox: [UInt8] = []
    private var isComplete = false
    private var failure: LinkError?
    private var isReading = true
    private(set) var isBlocked = false
    private var hasFinished = false
    private(set) var isClosed = false
    /// Whether what is under way from it arrives no more.
    private(set) var isLost = false
    private var signals = Signals()
    private var isNoticed = false
    private var hasScheduledFlush = false
    private(set) var writtenByteCount: UInt64 = 0

    init(_ line: SimulatedLine, isServer: Bool) {
        self.line = line
        self.isServer = isServer
        line.network.openCount += 1
    }

    deinit {
        // As a socket whose last descriptor is closed.
        guard !isClosed else { return }
        line.network.openCount -= 1
        if let peer { line.fail(peer) }
    }

    private var network: SimulatedNetwork { line.network }
    private var scheduler: SimulationScheduler { line.network.scheduler }
    /// Whose end it is, in a trace.
    var name: String { isServer ? "server" : "client" }
    /// Which way what it sends goes, in a trace.
    var arrow: String { isServer ? "←" : "→" }

    // MARK: What the network does

    func arrive(_ bytes: [UInt8]) {
        inbox += bytes
        signals.isReadable = true
        notice()
    }

    func arriveEnd() {
        isComplete = true
        signals.isReadable = true
        notice()
    }

    func fail(_ error: LinkError) {
        guard !isClosed, failure == nil else { return }
        failure = error
        signals.isReadable = true
        signals.isWritable = isBlocked
        notice()
    }

    /// Nothing that it sends arrives any more; the peer believes that it has finished.
    func cutOff() {
        guard !direction.isCut else { return }
        line.finish(from: self)
        direction.isCut = true
    }

    /// There is room again for what could not be written.
    func mayWriteOn() {
        guard isBlocked else { return }
        isBlocked = false
        signals.isWritable = true
        notice()
    }

    // MARK: The loop

    /// Has the loop look at it in a moment.
    private func notice() {
        guard receiver != nil, !isNoticed else { return }
        isNoticed = true
        _ = scheduler.schedule(after: scheduler.drawNotice()) { [self] in
            isNoticed = false
            if isServer { scheduler.calmly(tell) } else { tell() }
            let waits = signals.isWritable || signals.mustFlush || signals.hasEnded
            if waits || (signals.isReadable && isReading) { notice() }
        }
    }

    private func tell() {
        guard let receiver else { return }
        if signals.isWritable {
            signals.isWritable = false
            if !isClosed { receiver.streamIsWritable() }
        }
        if signals.mustFlush {
            signals.mustFlush = false
            hasScheduledFlush = false
            if !isClosed { receiver.streamShouldFlush() }
        }
        if signals.isReadable, isReading {
            signals.isReadable = false
            if !isClosed { receiver.streamIsReadable() }
        }
        if signals.hasEnded {
            signals = Signals()
            self.receiver = nil
            receiver.streamDidEnd(nil)
        }
    }

    // MARK: What a socket does

    func start(_ receiver: any ByteStreamReceiver) {
        self.receiver = receiver
        signals.isReadable = true
        notice()
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        if let failure { throw failure }
        guard !isClosed, !hasFinished else { throw .closed }
        let waiting = direction.byteCountUnderWay + (peer?.inbox.count ?? 0)
        var count = min(bytes.count, max(line.capacity - waiting, 0))
        if count > 1, network.happens(.shortWrite, network.faults.shortWrites) {
            count = network.details.below(count)
            // There would have been room: it comes back by itself.
            let delay = network.details.duration(.zero ... .milliseconds(100))
            _ = scheduler.schedule(after: delay) { [weak self] in self?.mayWriteOn() }
        }
        if count < bytes.count { isBlocked = true }
        writtenByteCount += UInt64(count)
        if count > 0 { line.carry(Array(bytes.prefix(count)), from: self) }
        return count
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        guard !isClosed else { throw .closed }
        if let failure { throw failure }
        let count = min(space.count, inbox.count)
        guard count > 0 else { return isComplete ? .endOfStream : .nothing }
        space.copyBytes(from: inbox.prefix(count))
        inbox.removeFirst(count)
        if hasInput {
            signals.isReadable = true
            notice()
        }
        peer?.mayWriteOn()
        return .bytes(count)
    }

    /// A system acknowledges what has arrived, whether or not it is read.
    var sendQueue: SendQueue? {
        let waiting = direction.byteCountUnderWay
        return SendQueue(taken: writtenByteCount - UInt64(waiting), waiting: waiting)
    }

    var hasInput: Bool { !inbox.isEmpty || isComplete || failure != nil }

    func scheduleFlush() -> Bool {
        guard !isClosed, receiver != nil else { return false }
        guard !hasScheduledFlush else { return true }
        hasScheduledFlush = true
        _ = scheduler.schedule(after: .microseconds(100)) { [self] in
            signals.mustFlush = true
            notice()
        }
        return true
    }

    func setReading(_ isReading: Bool) {
        guard self.isReading != isReading else { return }
        self.isReading = isReading
        guard isReading else { return }
        signals.isReadable = true
        notice()
    }

    func readAgain() {
        signals.isReadable = true
        notice()
    }

    func finishWriting() {
        guard !isClosed, !hasFinished else { return }
        hasFinished = true
        line.finish(from: self)
    }

    func close() {
        guard !isClosed else { return }
        // What was not read is refused, and what is under way goes with it (RFC 2525, 2.17).
        if !inbox.isEmpty { return abandon() }
        if !hasFinished { line.finish(from: self) }
        end()
    }

    func abandon() {
        guard !isClosed else { return }
        if !isServer, network.happens(.lateArrival, network.faults.lateArrivals) {
            line.failLate(behind: self)
        } else {
            isLost = true
            if let peer { line.fail(peer) }
        }
        end()
    }

    private func end() {
        isClosed = true
        inbox = []
        network.openCount -= 1
        signals.hasEnded = true
        notice()
    }
}
