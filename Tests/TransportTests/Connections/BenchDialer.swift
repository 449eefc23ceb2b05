import WaybillLink
import WaybillTesting
import WireCore

/// The system's dialer with faults on demand. It counts connections and bytes.
final class BenchDialer: Dialer {
    /// The outcome of a dial.
    enum Mode: Sendable {
        /// A connection to the requested endpoint.
        case open
        /// No connection.
        case refuse
        /// No result until the dialling task is cancelled.
        case hang
        /// A connection to a peer that sends nothing.
        case silent
        /// A connection to a peer that sends these bytes after the first 20 bytes.
        case say([UInt8])
        /// A connection to a peer with a script.
        case script(ScriptedByteStream)
        /// A connection whose written bytes are discarded.
        case mute
    }

    private struct State: Sendable {
        var mode = Mode.open
        var next: [Mode] = []
        var count = 0
        /// The number of further connections at the same time; nil for any number.
        var room: Int?
        var waiting: [CheckedContinuation<Void, Never>] = []
        var streams: [MutableStream] = []
        /// The stream of the latest dial; nil until it is open.
        var last: MutableStream?
    }

    private let state = Locked(State())

    /// The outcome of all further dials.
    var mode: Mode {
        get { state.withLock { $0.mode } }
        set { state.withLock { $0.mode = newValue } }
    }

    /// The outcomes of the next dials. After them ``mode`` applies.
    func next(_ modes: Mode...) { state.withLock { $0.next += modes } }

    /// The number of dials.
    var count: Int { state.withLock { $0.count } }

    /// Limits the number of connections at the same time. Further dials wait until a connection is closed.
    func limit(to room: Int) { state.withLock { $0.room = room } }

    /// Discards all further writes on the open connections, so that no answers come. The transport is not told.
    func mute() { for stream in state.withLock({ $0.streams }) { stream.mute() } }

    /// Takes no further writes on the open connections, as if the peer read nothing more.
    func block() { for stream in state.withLock({ $0.streams }) { stream.block() } }

    /// Discards all further bytes from the peer on the open connections, but not their end.
    func deafen() { for stream in state.withLock({ $0.streams }) { stream.deafen() } }

    /// Discards all further bytes in both directions on the open connections.
    func isolate() { for stream in state.withLock({ $0.streams }) { stream.isolate() } }

    /// The number of bytes written to the latest connection.
    var written: Int { state.withLock { $0.last }?.written ?? 0 }

    /// The first 4 KiB written to the latest connection.
    var writtenBytes: [UInt8] { state.withLock { $0.last }?.writtenBytes ?? [] }

    /// The number of discarded bytes.
    var swallowed: Int { state.withLock { $0.streams }.reduce(0) { $0 + $1.swallowed } }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        await takeRoom()
        let mode = state.withLock { state in
            state.count += 1
            state.last = nil
            return state.next.isEmpty ? state.mode : state.next.removeFirst()
        }
        let base: any ByteStream
        switch mode {
        case .refuse: throw .refused
        case .hang:
            // The loop ends when the task is cancelled.
            let (never, continuation) = AsyncStream<Never>.makeStream()
            for await _ in never {}
            continuation.finish()
            throw .cancelled
        case .silent: base = ScriptedByteStream(.skip(1 << 30)).open()
        case .say(let bytes): base = ScriptedByteStream(.skip(20), .reply(bytes)).open()
        case .script(let script): base = script.open()
        case .open, .mute:
            base = try await LinkEnvironment.system.dialer.dial(
                endpoint,
                timeout: timeout,
                timers: timers
            )
        }
        let stream = MutableStream(base) { [weak self] in self?.giveRoom() }
        if case .mute = mode { stream.mute() }
        state.withLock { state in
            state.streams.append(stream)
            state.last = stream
        }
        return stream
    }

    private func takeRoom() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                guard let room = state.room else { return true }
                if room > 0 { state.room = room - 1 } else { state.waiting.append(continuation) }
                return room > 0
            }
            if isFree { continuation.resume() }
        }
    }

    private func giveRoom() {
        let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
            guard let room = state.room else { return nil }
            if state.waiting.isEmpty { state.room = room + 1 }
            return state.waiting.isEmpty ? nil : state.waiting.removeFirst()
        }
        next?.resume()
    }
}

/// A stream that can become half open: its written bytes are discarded.
final class MutableStream: ByteStream, ByteStreamReceiver {
    private struct State: Sendable {
        var receiver: (any ByteStreamReceiver)?
        var isMute = false
        var isBlocked = false
        var isDeaf = false
        var onEnd: (@Sendable () -> Void)?
        var swallowed = 0
        var written = 0
        /// The first 4 KiB that were written.
        var writtenBytes: [UInt8] = []
    }

    private let base: any ByteStream
    private let state = Locked(State())

    init(_ base: any ByteStream, onEnd: @escaping @Sendable () -> Void) {
        self.base = base
        state.withLock { $0.onEnd = onEnd }
    }

    var swallowed: Int { state.withLock { $0.swallowed } }

    var written: Int { state.withLock { $0.written } }

    var writtenBytes: [UInt8] { state.withLock { $0.writtenBytes } }

    func mute() { state.withLock { $0.isMute = true } }

    func block() { state.withLock { $0.isBlocked = true } }

    func deafen() { state.withLock { $0.isDeaf = true } }

    func isolate() {
        state.withLock { state in
            state.isMute = true
            state.isDeaf = true
        }
    }

    private var isMute: Bool { state.withLock { $0.isMute } }

    func start(_ receiver: any ByteStreamReceiver) {
        state.withLock { $0.receiver = receiver }
        base.start(self)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        if state.withLock({ $0.isBlocked }) { return 0 }
        let isMute = state.withLock { state in
            state.written += bytes.count
            // Streams in these tests accept all bytes of a write.
            state.writtenBytes += bytes.prefix(max(4_096 - state.writtenBytes.count, 0))
            if state.isMute { state.swallowed += bytes.count }
            return state.isMute
        }
        return isMute ? bytes.count : try base.write(bytes)
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        while true {
            let outcome = try base.read(into: space)
            guard case .bytes = outcome, state.withLock({ $0.isDeaf }) else { return outcome }
        }
    }

    func scheduleFlush() -> Bool { base.scheduleFlush() }
    func setReading(_ isReading: Bool) { base.setReading(isReading) }
    func readAgain() { base.readAgain() }
    func finishWriting() { if !isMute { base.finishWriting() } }
    func close() {
        base.close()
        state.withLock { $0.onEnd.take() }?()
    }

    func streamIsReadable() { state.withLock { $0.receiver }?.streamIsReadable() }
    func streamIsWritable() { state.withLock { $0.receiver }?.streamIsWritable() }
    func streamShouldFlush() { state.withLock { $0.receiver }?.streamShouldFlush() }
    func streamDidEnd(_ error: LinkError?) {
        let (receiver, onEnd) = state.withLock { ($0.receiver.take(), $0.onEnd.take()) }
        onEnd?()
        receiver?.streamDidEnd(error)
    }
}

/// A clock that records the deadlines of its timers.
final class RememberingTimers: TimerSource {
    private let base: any TimerSource
    private let deadlines: Kept<[WireInstant]>

    init(_ base: any TimerSource, _ deadlines: Kept<[WireInstant]>) {
        self.base = base
        self.deadlines = deadlines
    }

    var now: WireInstant { base.now }

    func scheduleTimer(
        at deadline: WireInstant,
        _ action: @escaping @Sendable () -> Void
    ) -> UInt64 {
        defer { deadlines.withLock { $0.append(deadline) } }
        return base.scheduleTimer(at: deadline, action)
    }

    func cancelTimer(_ token: UInt64) { base.cancelTimer(token) }
}
