import WireCore

/// A stream that counts as broken when no data has arrived for a time.
///
/// Time in which reading is stopped does not count.
final class IdleTimeoutStream: StreamLayer, ByteStreamReceiver {
    private struct State: Sendable {
        var receiver: (any ByteStreamReceiver)?
        var isReading = true
        /// The time of the last data, or of resuming to read.
        var lastSign: WireInstant
        var timer: UInt64?
        var hasTimedOut = false
    }

    let base: any ByteStream
    private let limit: Duration
    private let timers: any TimerSource
    private let state: Locked<State>

    /// - Parameters:
    ///   - base: The stream below, not started yet.
    ///   - limit: The longest silence.
    ///   - timers: The clock.
    init(_ base: any ByteStream, limit: Duration, timers: any TimerSource) {
        self.base = base
        self.limit = max(limit, .zero)
        self.timers = timers
        state = Locked(State(lastSign: timers.now))
    }

    func start(_ receiver: any ByteStreamReceiver) {
        state.withLock { state in
            state.receiver = receiver
            state.lastSign = timers.now
        }
        base.start(self)
        watch()
    }

    func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
        do throws(LinkError) { return try base.write(bytes) } catch { throw telling(error) }
    }

    func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
        do throws(LinkError) {
            let outcome = try base.read(into: space)
            if case .bytes = outcome {
                let now = timers.now
                state.withLock { $0.lastSign = now }
            }
            return outcome
        } catch {
            throw telling(error)
        }
    }

    func setReading(_ isReading: Bool) {
        state.withLock { state in
            if isReading, !state.isReading { state.lastSign = timers.now }
            state.isReading = isReading
        }
        base.setReading(isReading)
        if isReading { watch() }
    }

    // MARK: The stream below

    func streamIsReadable() { receiver?.streamIsReadable() }
    func streamIsWritable() { receiver?.streamIsWritable() }
    func streamShouldFlush() { receiver?.streamShouldFlush() }

    func streamDidEnd(_ error: LinkError?) {
        let (receiver, timer) = state.withLock { ($0.receiver.take(), $0.timer.take()) }
        if let timer { timers.cancelTimer(timer) }
        receiver?.streamDidEnd(error.map(telling) ?? (hasTimedOut ? .silent : nil))
    }

    private var receiver: (any ByteStreamReceiver)? { state.withLock { $0.receiver } }

    // MARK: The time limit

    private var hasTimedOut: Bool { state.withLock { $0.hasTimedOut } }

    /// The error to report: the timeout, rather than the close that follows from it.
    private func telling(_ error: LinkError) -> LinkError { hasTimedOut ? .silent : error }

    /// Sets the timer for the limit, unless it is set or no data is awaited.
    private func watch() {
        state.withLock { state in
            guard state.receiver != nil, state.isReading, state.timer == nil else { return }
            let deadline = state.lastSign.advanced(by: limit)
            state.timer = timers.scheduleTimer(at: deadline) { [weak self] in
                self?.timerFired(deadline)
            }
        }
    }

    private func timerFired(_ deadline: WireInstant) {
        // The coarse clock may be behind the deadline that has just passed.
        let now = max(timers.now, deadline)
        let isOver = state.withLock { state in
            state.timer = nil
            let isOver = state.isReading && state.lastSign.advanced(by: limit) <= now
            state.hasTimedOut = isOver
            return isOver
        }
        if isOver { base.close() } else { watch() }
    }
}

/// A dialer whose streams count as broken after a time of silence.
private struct IdleTimeoutDialer: Dialer {
    let base: any Dialer
    let limit: Duration

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let stream = try await base.dial(endpoint, timeout: timeout, timers: timers)
        return IdleTimeoutStream(stream, limit: limit, timers: timers)
    }
}

extension LinkEnvironment {
    /// The same environment with streams that count as broken after a time of silence.
    ///
    /// - Parameter limit: The longest silence; nil for no limit.
    /// - Returns: The environment.
    package func withReadTimeout(_ limit: Duration?) -> LinkEnvironment {
        guard let limit else { return self }
        var copy = self
        copy.dialer = IdleTimeoutDialer(base: dialer, limit: limit)
        return copy
    }
}
