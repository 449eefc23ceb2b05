#if os(Linux)
    import WireCore

    /// Connects through another dialer and secures its streams.
    final class TLSDialer: Dialer {
        private let base: any Dialer
        private let settings: TLSSettings
        private let kept = Locked<TLSContext?>(nil)

        init(base: any Dialer, settings: TLSSettings) {
            self.base = base
            self.settings = settings
        }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let deadline = timers.now.advanced(by: timeout)
            // Invalid settings are refused before anything is sent.
            let context = try context()
            let host = settings.serverName ?? endpoint.host
            let connection = try TLSConnection(context, host: host, by: deadline)
            let stream = try await base.dial(endpoint, timeout: timeout, timers: timers)
            return try await LayerStream(over: stream, connection, timers: timers).opened()
        }

        /// The context for the next connection: the last one, unless files may have changed.
        private func context() throws(LinkError) -> TLSContext {
            if let context = kept.withLock({ $0 }) { return context }
            let context = try TLSContext(settings)
            if !settings.readsFiles { kept.withLock { $0 = context } }
            return context
        }
    }
#endif
