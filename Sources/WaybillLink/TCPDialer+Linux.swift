#if os(Linux)
    import WireCore

    /// Connects over TCP, trying every address of the host in the resolver's order.
    package struct TCPDialer: Dialer {
        package init() {}

        package func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let attempt = TCPConnectAttempt(endpoint, loop: try SharedEventLoop.acquire())
            let deadline = timers.now.advanced(by: timeout)
            let timer = timers.scheduleTimer(at: deadline) { attempt.fail(.timedOut) }
            await Suspension.wait {
                attempt.begin($0)
            } onCancel: {
                attempt.fail(.cancelled)
            }
            timers.cancelTimer(timer)
            guard let outcome = attempt.outcome else { throw .cancelled }
            return try outcome.get()
        }
    }
#endif
