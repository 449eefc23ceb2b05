import Dispatch

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A request to stop, which comes once.
final class Stop: Sendable {
    private let requests: AsyncStream<Void>
    private let request: AsyncStream<Void>.Continuation

    init() {
        (requests, request) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    /// Requests the stop.
    func stop() {
        request.yield()
        request.finish()
    }

    /// Calls the action when the stop is requested, also if that was before.
    func onStop(_ action: @escaping @Sendable () -> Void) {
        Task {
            for await _ in requests { action() }
        }
    }

    /// Stops when the process gets SIGTERM or SIGINT, which end it no longer by themselves.
    ///
    /// - Returns: The sources of the signals, which must be kept.
    func followSignals() -> [any DispatchSourceSignal] {
        [SIGTERM, SIGINT].map { number in
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler { self.stop() }
            source.activate()
            return source
        }
    }
}
