import WaybillLink
import WaybillTesting
import WireCore

/// The system's dialer with faults on demand, and a memory.
final class BenchDialer: Dialer {
    /// What becomes of who dials.
    enum Mode: Sendable {
        /// A connection to where it was asked for.
        case open
        /// No connection.
        case refuse
        /// A connection to somebody who never says anything.
        case silent
        /// A connection to somebody who says this after the first 20 bytes.
        case say([UInt8])
    }

    private struct State: Sendable {
        var mode = Mode.open
        var next: [Mode] = []
        var count = 0
        var streams: [MutableStream] = []
        /// Of whoever dialled last; nil until it is there.
        var last: MutableStream?
    }

    private let state = Locked(State())

    /// What becomes of who dials from now on.
    var mode: Mode {
        get { state.withLock { $0.mode } }
        set { state.withLock { $0.mode = newValue } }
    }

    /// What becomes of those who dial next, before ``mode`` counts.
    func next(_ modes: Mode...) { state.withLock { $0.next += modes } }

    /// How many connections were asked for.
    var count: Int { state.withLock { $0.count } }

    /// What is written to the connections that there are gets nowhere, so that no answer comes, and nobody is told.
    func mute() { for stream in state.withLock({ $0.streams }) { stream.mute() } }

    /// How many bytes have been written to the connection that came last.
    var written: Int { state.withLock { $0.last }?.written ?? 0 }

    /// How many bytes have got nowhere.
    var swallowed: Int { state.withLock { $0.streams }.reduce(0) { $0 + $1.swallowed } }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let mode = state.withLock { state in
            state.count += 1
            state.last = nil
            return state.next.isEmpty ? state.mode : state.next.removeFirst()
        }
        let base: any ByteStream
        switch mode {
        case .refuse: throw .refused
        case .silent: base = ScriptedByteStream(.skip(1 << 30)).open()
        case .say(let bytes): base = ScriptedByteStream(.skip(20), .reply(bytes)).open()
        case .open:
            base = try await LinkEnvironment.system.dialer.dial(
                endpoint,
                timeout: timeout,
                timers: timers
            )
        }
        let stream = MutableStream(base)
        state.withLock { state in
            state.streams.append(stream)
            state.last = stream
        }
        return stream
    }
}

/// A stream that can go half open: what is written gets nowhere.
final class MutableStream: ByteStream, ByteStreamReceiver {
    private struct State: Sendable {
        var receiver: (any ByteStreamReceiver)?
        var isMute = false
        var swallowed = 0
        var written = 0
    }

    private let base: any ByteStream
    private let state = Locked(State())

    init(_ base: any ByteStream) { self.base = base }

    var swallowed: Int { state.withLock { $0.swallowed } }

    var written: Int { state.withLock { $0.written } }

    func mute() { state.withLock { $0.isMute = true } }

    private var isMute: Bool { state.withLock { $0.isMute } }

    func start(_ receiver: any ByteStreamReceiver) {
        state.withLock { $0.receiver = receiver }
        base.start(self)
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        let isMute = state.withLock { state in
            state.written += bytes.count
            if state.isMute { state.swallowed += bytes.count }
            return state.isMute
        }
        return isMute ? bytes.count : try base.write(bytes)
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        try base.read(into: space)
    }

    func scheduleFlush() -> Bool { base.scheduleFlush() }
    func setReading(_ isReading: Bool) { base.setReading(isReading) }
    func readAgain() { base.readAgain() }
    func finishWriting() { if !isMute { base.finishWriting() } }
    func close() { base.close() }

    func streamIsReadable() { state.withLock { $0.receiver }?.streamIsReadable() }
    func streamIsWritable() { state.withLock { $0.receiver }?.streamIsWritable() }
    func streamShouldFlush() { state.withLock { $0.receiver }?.streamShouldFlush() }
    func streamDidEnd(_ error: LinkError?) {
        state.withLock { $0.receiver.take() }?.streamDidEnd(error)
    }
}

/// A clock that remembers for when it was set.
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
