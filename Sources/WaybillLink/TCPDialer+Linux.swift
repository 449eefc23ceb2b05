#if os(Linux)
    import WireCore

    /// Connects over TCP: the addresses of the host race (RFC 8305).
    package struct TCPDialer: Dialer {
        /// Finds the addresses of an endpoint and passes them on, once and from any thread.
        package typealias Resolve =
            @Sendable (
                Endpoint,
                _ completion: @escaping @Sendable (Result<[SocketAddress], LinkError>) -> Void
            ) -> Void

        private let resolve: Resolve

        /// Connects to the addresses that the system's resolver finds.
        package init() {
            self.init(resolve: NameResolver.resolve)
        }

        /// Connects to the addresses that a test says.
        package init(resolve: @escaping Resolve) {
            self.resolve = resolve
        }

        package func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let attempt = TCPConnectAttempt(loop: try SharedEventLoop.acquire(), timers: timers)
            let deadline = timers.now.advanced(by: timeout)
            let timer = timers.scheduleTimer(at: deadline) { attempt.fail(.timedOut) }
            await Suspension.wait {
                attempt.begin($0) { resolve(endpoint, $0) }
            } onCancel: {
                attempt.fail(.cancelled)
            }
            timers.cancelTimer(timer)
            guard let outcome = attempt.outcome else { throw .cancelled }
            return try outcome.get()
        }
    }
#endif
