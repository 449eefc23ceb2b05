#if os(Linux)
    import Foundation
    import Testing
    import WaybillLink
    import WireCore

    /// A server on OpenSSL's functions, loaded as the link loads them. It can do what the package's TLS cannot.
    ///
    /// `@unchecked Sendable`, because: the pair below it, and the test, use it on one thread at a time.
    final class RawTLSServer: Dialer, ByteStreamReceiver, @unchecked Sendable {
        private typealias Pointer = UnsafeMutableRawPointer
        private typealias Make = @convention(c) () -> Pointer?
        private typealias MakeFrom = @convention(c) (Pointer?) -> Pointer?
        private typealias Load = @convention(c) (Pointer?, UnsafePointer<CChar>, Int32) -> Int32
        private typealias Transfer = @convention(c) (Pointer?, Pointer?, Int32) -> Int32
        private typealias Step = @convention(c) (Pointer?) -> Int32
        private typealias Update = @convention(c) (Pointer?, Int32) -> Int32
        private typealias Consume = @convention(c) (Pointer?) -> Void
        private typealias Join = @convention(c) (Pointer?, Pointer?, Pointer?) -> Void

        let pair = ByteStreamPair(capacity: 65_536)
        /// The number of bytes received.
        private(set) var receivedByteCount = 0
        /// True when it reads incoming bytes.
        var isReading = true

        private let library: Pointer
        private let context: Pointer?
        private let connection: Pointer?
        private let inbound: Pointer?
        private let outbound: Pointer?

        init() throws {
            let names = ["libssl.so.3", "libssl.so.1.1"]
            let opened = names.lazy.compactMap { name in dlopen(name, RTLD_NOW) }
            library = try #require(opened.first)
            let memory = try Self.find("BIO_s_mem", in: library, as: Make.self)()
            let makeBIO = try Self.find("BIO_new", in: library, as: MakeFrom.self)
            (inbound, outbound) = (makeBIO(memory), makeBIO(memory))
            let method = try Self.find("TLS_server_method", in: library, as: Make.self)()
            context = try Self.find("SSL_CTX_new", in: library, as: MakeFrom.self)(method)
            for (function, file) in [
                ("SSL_CTX_use_certificate_file", "server.pem"),
                ("SSL_CTX_use_PrivateKey_file", "server.key"),
            ] {
                let load = try Self.find(function, in: library, as: Load.self)
                // SSL_FILETYPE_PEM.
                try #require(load(context, Certificates.path(file), 1) == 1)
            }
            connection = try Self.find("SSL_new", in: library, as: MakeFrom.self)(context)
            try Self.find("SSL_set_bio", in: library, as: Join.self)(connection, inbound, outbound)
            try Self.find("SSL_set_accept_state", in: library, as: Consume.self)(connection)
        }

        deinit {
            try? Self.find("SSL_free", in: library, as: Consume.self)(connection)
            try? Self.find("SSL_CTX_free", in: library, as: Consume.self)(context)
        }

        private static func find<Function>(
            _ name: String,
            in library: Pointer,
            as type: Function.Type
        ) throws -> Function {
            // The types are those of OpenSSL's manual pages.
            unsafeBitCast(try #require(dlsym(library, name)), to: type)
        }

        /// Updates the server's keys, and asks the client to update its own (RFC 8446, 4.6.3).
        func updateKeys() {
            let update = try? Self.find("SSL_key_update", in: library, as: Update.self)
            // SSL_KEY_UPDATE_REQUESTED.
            #expect(update?(connection, 1) == 1)
            advance()
        }

        private func advance() {
            guard let step = try? Self.find("SSL_do_handshake", in: library, as: Step.self),
                let read = try? Self.find("BIO_read", in: library, as: Transfer.self)
            else { return }
            _ = step(connection)
            var bytes = [UInt8](repeating: 0, count: 16_384)
            while true {
                let count = read(outbound, &bytes, Int32(bytes.count))
                guard count > 0 else { return }
                let written = bytes.withUnsafeBytes { bytes in
                    try? pair.second.write(UnsafeRawBufferPointer(rebasing: bytes[..<Int(count)]))
                }
                guard written == Int(count) else { return }
            }
        }

        /// Connects a client to the server.
        func connect() async throws -> (driver: Driver<LineCore>, heard: Recorder) {
            var settings = TLSSettings()
            settings.authorities = [.file(Certificates.path("ca.pem"))]
            let timers = ManualTimers()
            pair.second.start(self)
            let stream = try await secured(by: settings).dial(
                Endpoint(host: "localhost", port: 443),
                timeout: .seconds(10),
                timers: timers
            )
            let heard = Recorder()
            let driver = Driver(core: LineCore(), stream: stream, timers: timers)
            driver.start(heard.handler)
            return (driver, heard)
        }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream { pair.first }

        // MARK: ByteStreamReceiver

        func streamIsReadable() {
            guard isReading,
                let write = try? Self.find("BIO_write", in: library, as: Transfer.self)
            else { return }
            var bytes = [UInt8](repeating: 0, count: 65_536)
            let outcome = bytes.withUnsafeMutableBytes { try? pair.second.read(into: $0) }
            guard case .bytes(let count) = outcome else { return }
            receivedByteCount += count
            _ = write(inbound, &bytes, Int32(count))
            advance()
        }

        func streamIsWritable() {}
        func streamShouldFlush() {}
        func streamDidEnd(_ error: LinkError?) {}
    }
#endif
