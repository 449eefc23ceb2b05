package import WireCore

/// A time limit as a layer: a stream counts as broken when no data has arrived for a time.
///
/// Time in which reading is stopped does not count.
package struct IdleTimeout: StreamLayer {
    package static var isTransparent: Bool { true }
    package static var isTimed: Bool { true }

    private let limit: Duration
    private var isReading = false
    /// The time of the last data, or of resuming to read.
    private var lastSign = WireInstant.zero

    /// - Parameter limit: The longest silence.
    init(limit: Duration) {
        self.limit = max(limit, .zero)
    }

    package var deadline: WireInstant? { isReading ? lastSign.advanced(by: limit) : nil }

    package func advance(to now: WireInstant) -> LinkError? {
        deadline.map { $0 <= now } == true ? .silent : nil
    }

    package mutating func noteReading(_ isReading: Bool, at now: WireInstant) {
        if isReading, !self.isReading { lastSign = now }
        self.isReading = isReading
    }

    package mutating func noteRead(at now: WireInstant) {
        lastSign = now
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
        return try await LayerStream(over: stream, IdleTimeout(limit: limit), timers: timers)
            .opened()
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
