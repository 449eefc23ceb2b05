#if os(Linux)
    import WaybillLink
    import WireCore

    /// The link with TLS: many bytes through one connection, and many connections one after the other.
    enum TLSBenchmarks {
        /// Requests a file by HTTP and counts the bytes.
        private struct Download: ProtocolCore {
            enum Event: Sendable {
                case finished(Int)
            }

            var outbound = ByteWriter()
            private(set) var isFinished = false
            private var byteCount = 0
            private var events: [Event] = []

            init() {
                outbound.append(Array("GET /blob HTTP/1.0\r\n\r\n".utf8))
            }

            var deadline: WireInstant? { nil }
            var hasEvents: Bool { !events.isEmpty }

            mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
                byteCount += buffer.count
                buffer.removeAll()
            }

            mutating func receiveEndOfStream(at now: WireInstant) {
                events.append(.finished(byteCount))
                isFinished = true
            }

            mutating func advance(to now: WireInstant) {}

            mutating func takeEvents() -> [Event] {
                defer { events = [] }
                return events
            }
        }

        private static func settings(_ authority: String) -> TLSSettings {
            var settings = TLSSettings()
            settings.authorities = [.file(authority)]
            return settings
        }

        /// Downloads once.
        /// - Returns: The number of bytes, head included.
        private static func download(
            _ dialer: any Dialer,
            _ port: Int,
            _ timers: any TimerSource
        ) async throws -> Int {
            let endpoint = Endpoint(host: "localhost", port: UInt16(port))
            let stream = try await dialer.dial(endpoint, timeout: .seconds(30), timers: timers)
            let driver = Driver(core: Download(), stream: stream, timers: timers)
            let (ended, finish) = AsyncStream.makeStream(of: Int.self)
            driver.start(
                .init(
                    receive: { events in
                        for case .finished(let count) in events { finish.yield(count) }
                    },
                    end: { _ in finish.finish() }
                )
            )
            var total = 0
            for await count in ended { total += count }
            return total
        }

        /// Receives at least `count` bytes over one connection.
        @concurrent
        static func receive(port: Int, _ count: Int, authority: String) async throws {
            let environment = LinkEnvironment.system
            let timers = environment.clock
            let dialer = environment.dialer.secured(by: settings(authority))
            let before = Usage()
            let total = try await download(dialer, port, timers)
            if total >= count { before.report("waybill", count >> 20) }
        }

        /// Connects and closes `count` times.
        @concurrent
        static func cycle(port: Int, _ count: Int, authority: String) async throws {
            let environment = LinkEnvironment.system
            let timers = environment.clock
            let dialer = environment.dialer.secured(by: settings(authority))
            let before = Usage()
            var done = 0
            for _ in 0..<count where try await download(dialer, port, timers) > 0 { done += 1 }
            if done == count { before.report("waybill", count) }
        }
    }
#endif
