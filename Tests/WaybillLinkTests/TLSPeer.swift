#if os(Linux)
    import WaybillLink
    import WireCore

    /// A TLS server at the other end of each dialled pair. It echoes lines and records the bytes it got.
    final class TLSPeer: Dialer {
        let pair: ByteStreamPair
        let timers = ManualTimers()
        let heard = Recorder()
        private let stream = Locked<TLSStream?>(nil)
        private let driver = Locked<Driver<LineCore>?>(nil)
        private let context: TLSContext?
        /// True when the stream below TLS stays open after the peer has ended TLS.
        private let staysOpen: Bool
        /// True when a client that has stopped reading is still told of events, as a socket tells of its end.
        private let tellsAlways: Bool

        /// - Parameters:
        ///   - name: The name of the certificate.
        ///   - capacity: The number of bytes that each direction of the pair holds.
        ///   - staysOpen: True when the stream below TLS stays open after the peer has ended TLS.
        ///   - tellsAlways: True when a client that has stopped reading is still told of events.
        ///   - change: Changes the other settings.
        init(
            _ name: String = "server",
            capacity: Int = 1 << 20,
            staysOpen: Bool = false,
            tellsAlways: Bool = false,
            _ change: (inout TLSSettings) -> Void = { _ in }
        ) throws {
            pair = ByteStreamPair(capacity: capacity)
            self.staysOpen = staysOpen
            self.tellsAlways = tellsAlways
            var settings = TLSSettings()
            settings.identity = .certificate(
                .file(Certificates.path("\(name).pem")),
                key: .file(Certificates.path("\(name).key")),
                password: nil
            )
            change(&settings)
            context = try TLSContext(settings, role: .server)
        }

        /// A peer that sends nothing.
        init(silent: Void) {
            pair = ByteStreamPair()
            staysOpen = false
            tellsAlways = false
            context = nil
        }

        /// The negotiated parameters, as the server sees them.
        var tls: TLSAgreement? { stream.withLock { $0 }?.tls }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            guard let context else { return pair.first }
            let base = staysOpen ? AlteredStream(pair.second, endsBelow: false) : pair.second
            let stream = try TLSStream(over: base, context, host: "client")
            let driver = Driver(core: LineCore(echoes: true), stream: stream, timers: self.timers)
            self.stream.withLock { $0 = stream }
            self.driver.withLock { $0 = driver }
            stream.open()
            driver.start(heard.handler)
            return tellsAlways ? AlteredStream(pair.first, holdsBack: false) : pair.first
        }

        func setReading(_ isReading: Bool) {
            driver.withLock { $0 }?.setReading(isReading)
        }

        func send(_ line: String) {
            driver.withLock { $0 }?.withCore { core, _ in core.send(line) }
        }

        /// Ends the connection with TLS's close alert.
        func finish() {
            driver.withLock { $0 }?.withCore { core, _ in core.isFinished = true }
        }

        /// Connects a client to the peer.
        func connect(
            host: String = "localhost",
            timers: ManualTimers = ManualTimers(),
            _ change: (inout TLSSettings) -> Void = { _ in }
        ) async throws -> (driver: Driver<LineCore>, stream: any ByteStream, heard: Recorder) {
            var settings = TLSSettings()
            settings.authorities = [.file(Certificates.path("ca.pem"))]
            change(&settings)
            let stream = try await secured(by: settings).dial(
                Endpoint(host: host, port: 443),
                timeout: .seconds(10),
                timers: timers
            )
            let heard = Recorder()
            let driver = Driver(core: LineCore(), stream: stream, timers: timers)
            driver.start(heard.handler)
            return (driver, stream, heard)
        }
    }

    /// A stream that ignores its own end, or reports events while reading is off.
    private final class AlteredStream: ByteStream {
        private let base: any ByteStream
        private let endsBelow: Bool
        private let holdsBack: Bool

        init(_ base: any ByteStream, endsBelow: Bool = true, holdsBack: Bool = true) {
            self.base = base
            self.endsBelow = endsBelow
            self.holdsBack = holdsBack
        }

        func start(_ receiver: any ByteStreamReceiver) { base.start(receiver) }
        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try base.write(bytes)
        }
        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            try base.read(into: space)
        }
        func scheduleFlush() -> Bool { base.scheduleFlush() }
        func setReading(_ isReading: Bool) { if holdsBack { base.setReading(isReading) } }
        func readAgain() { base.readAgain() }
        func finishWriting() { if endsBelow { base.finishWriting() } }
        func close() { if endsBelow { base.close() } }
    }
#endif
