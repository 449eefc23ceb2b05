#if os(Linux)
    import WireCore

    /// Connects over TCP; the addresses of the host race (RFC 8305).
    package struct TCPDialer: Dialer {
        /// Finds the addresses of an endpoint and returns them once, on any thread.
        package typealias Resolve =
            @Sendable (
                Endpoint,
                _ completion: @escaping @Sendable (Result<[SocketAddress], LinkError>) -> Void
            ) -> Void

        private let resolve: Resolve

        /// Makes a dialer with the system's resolver.
        package init() {
            self.init(resolve: NameResolver.resolve)
        }

        /// Makes a dialer with a test's resolver.
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
            defer { timers.cancelTimer(timer) }
            if !Task.isCancelled { resolve(endpoint) { attempt.begin($0) } }
            return try await attempt.stream()
        }
    }
#endif
