import HTTPWire
import Testing
import WaybillLink
import WebSocketWire
import WireCore
import WireTestSupport

/// An abandoned stream resets the connection at the bottom, whatever streams lie between.
@Suite("Streams that are abandoned", .timeLimit(.minutes(30))) struct AbandonTests {
    /// Records how each dialled stream is ended.
    private final class EndingsDialer: Dialer {
        let base: any Dialer
        let endings = Locked<[String]>([])

        init(_ base: any Dialer) {
            self.base = base
        }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let stream = try await base.dial(endpoint, timeout: timeout, timers: timers)
            return EndingsStream(stream) { ending in self.endings.withLock { $0.append(ending) } }
        }
    }

    private final class EndingsStream: ByteStream {
        private let base: any ByteStream
        private let note: @Sendable (String) -> Void

        init(_ base: any ByteStream, _ note: @escaping @Sendable (String) -> Void) {
            self.base = base
            self.note = note
        }

        func start(_ receiver: any ByteStreamReceiver) { base.start(receiver) }
        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try base.write(bytes)
        }
        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            try base.read(into: space)
        }
        func scheduleFlush() -> Bool { base.scheduleFlush() }
        func setReading(_ isReading: Bool) { base.setReading(isReading) }
        func readAgain() { base.readAgain() }
        func finishWriting() {
            note("finish")
            base.finishWriting()
        }
        func close() {
            note("close")
            base.close()
        }
        func abandon() {
            note("abandon")
            base.abandon()
        }
    }

    /// A peer that reads everything and sends nothing, except the acceptance of a WebSocket.
    private final class QuietPeer: Dialer {
        let server = Recorder()
        let webSocket = Locked<Driver<WebSocketConnection>?>(nil)
        let acceptsWebSocket: Bool

        init(acceptsWebSocket: Bool = false) {
            self.acceptsWebSocket = acceptsWebSocket
        }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let pair = ByteStreamPair()
            guard acceptsWebSocket else {
                Driver(core: LineCore(), stream: pair.second, timers: timers).start(server.handler)
                return pair.first
            }
            let configuration = WebSocketConfiguration { Array(repeating: 0, count: $0) }
            let driver = Driver(
                core: WebSocketConnection(serverWith: configuration, at: .zero),
                stream: pair.second,
                timers: timers
            )
            webSocket.withLock { $0 = driver }
            driver.start(
                .init(
                    receive: { events in
                        guard case .requested? = events.first else { return }
                        driver.withCore(.immediate) { core, _ in core.accept() }
                    },
                    end: { _ in }
                )
            )
            return pair.first
        }
    }

    enum Layer: String, CaseIterable, Sendable {
        case none, readTimeout, proxy, tls, webSocket
    }

    #if os(Linux)
        private static let every = Layer.allCases.filter { $0 != .tls || Certificates.areThere }
    #else
        private static let every = Layer.allCases.filter { $0 != .tls }
    #endif

    @Test("Each layer hands it on, and says no goodbye below", arguments: every)
    func layers(layer: Layer) async throws {
        let timers = ManualTimers()
        let peer: any Dialer
        switch layer {
        case .none, .readTimeout: peer = QuietPeer()
        case .proxy: peer = ProxyPeer(to: QuietPeer())
        case .tls:
            #if os(Linux)
                peer = try TLSPeer()
            #else
                return
            #endif
        case .webSocket: peer = QuietPeer(acceptsWebSocket: true)
        }
        let bottom = EndingsDialer(peer)
        var environment = LinkEnvironment(
            dialer: bottom,
            clock: timers,
            random: { 0 }
        )
        switch layer {
        case .none: break
        case .readTimeout: environment = environment.withReadTimeout(.seconds(60))
        case .proxy:
            let proxy = ProxySettings(endpoint: Endpoint(host: "proxy", port: 3_128), headers: [:])
            environment.dialer = bottom.proxied(by: proxy)
        case .tls:
            #if os(Linux)
                var settings = TLSSettings()
                settings.authorities = [.file(Certificates.path("ca.pem"))]
                environment.dialer = bottom.secured(by: settings)
            #endif
        case .webSocket:
            environment.dialer = WebSocketDialer(
                base: bottom,
                request: .init(host: "h"),
                configuration: WebSocketConfiguration { Array(repeating: 0, count: $0) },
                units: .anywhere
            )
        }
        let stream = try await environment.dialer.dial(
            Endpoint(host: "localhost", port: 1),
            timeout: .seconds(10),
            timers: timers
        )
        let ends = Locked<[LinkError?]>([])
        Driver(core: UnansweredCore(), stream: stream, timers: timers)
            .start(.init(receive: { _ in }, end: { end in ends.withLock { $0.append(end) } }))
        try await waitUntil { !ends.withLock { $0.isEmpty } }
        #expect(ends.withLock { $0 } == [nil])
        #expect(bottom.endings.withLock { $0.first } == "abandon")
    }

    /// A core that sends one message, expects no answer, and is finished.
    private struct UnansweredCore: ProtocolCore {
        var outbound: ByteWriter
        var deadline: WireInstant? { nil }
        var isFinished: Bool { true }
        var hasEvents: Bool { false }
        var isUnanswered: Bool { true }

        init() {
            outbound = ByteWriter()
            outbound.append(UInt8(ascii: "x"))
        }

        mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {}
        mutating func receiveEndOfStream(at now: WireInstant) {}
        mutating func advance(to now: WireInstant) {}
        mutating func takeEvents() -> [LineCore.Event] { [] }
    }
}
