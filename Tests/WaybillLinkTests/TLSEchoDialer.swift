#if os(Linux)
    import WaybillLink
    import WireTestSupport

    /// Dials a new pair each time, whose other end shows the certificate `server` and echoes lines.
    struct TLSEchoDialer: Dialer {
        private let context: TLSContext

        init(_ change: (inout TLSSettings) -> Void = { _ in }) throws {
            var settings = TLSSettings()
            settings.identity = .certificate(
                .file(Certificates.path("server.pem")),
                key: .file(Certificates.path("server.key")),
                password: nil
            )
            change(&settings)
            context = try TLSContext(settings, role: .server)
        }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let pair = ByteStreamPair()
            let stream = try TLSStream(over: pair.second, context, host: "client")
            let driver = Driver(core: LineCore(echoes: true), stream: stream, timers: timers)
            stream.open()
            driver.start(.init(receive: { _ in }, end: { _ in }))
            return pair.first
        }
    }
#endif
