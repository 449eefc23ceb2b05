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
            let result = await withTaskCancellationHandler {
                await withCheckedContinuation { attempt.begin($0) }
            } onCancel: {
                attempt.fail(.cancelled)
            }
            timers.cancelTimer(timer)
            return try result.get()
        }
    }
#endif
