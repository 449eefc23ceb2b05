import Foundation
import HTTPWire
import Waybill
import WaybillLink
import WaybillTesting
import WaybillWebSocket
import WebSocketWire
import WireCore

/// A server in memory, for one connection, on a clock that stands still.
final class Peer: Dialer {
    typealias Handler =
        @Sendable (Driver<WebSocketConnection>, WebSocketEvent) -> Void

    private struct State: Sendable {
        var driver: Driver<WebSocketConnection>?
        var events: [WebSocketEvent] = []
        var ends = 0
    }

    let clock = ManualClock()
    let pair: ByteStreamPair
    private let state = Locked(State())
    private let handler: Handler
    private let configuration: WebSocketConfiguration

    /// - Parameters:
    ///   - capacity: The number of bytes that each direction holds.
    ///   - deflate: The compression parameters of the server.
    ///   - handler: The server's reaction to an event. By default it accepts and listens.
    init(
        capacity: Int = 1 << 20,
        deflate: PermessageDeflate? = nil,
        _ handler: @escaping Handler = Peer.accept
    ) {
        pair = ByteStreamPair(capacity: capacity)
        var configuration = WebSocketConfiguration { Array(repeating: 0, count: $0) }
        configuration.deflate = deflate
        configuration.maximumMessageSize = 16 << 20
        self.configuration = configuration
        self.handler = handler
    }

    static let accept: Handler = { driver, event in
        guard case .requested = event else { return }
        driver.withCore(.immediate) { core, _ in core.accept() }
    }

    static let echo: Handler = { driver, event in
        accept(driver, event)
        guard case .message(let message) = event else { return }
        driver.withCore(.immediate) { core, _ in
            try? core.send(message.kind, message.payload)
        }
    }

    /// The events of the server.
    var events: [WebSocketEvent] { state.withLock { $0.events } }

    /// The number of bytes that the server could not send yet.
    var unsentByteCount: Int {
        state.withLock { $0.driver }?.unsentByteCount ?? 0
    }

    /// The number of times its stream has ended.
    var ends: Int { state.withLock { $0.ends } }

    func stopReading() { state.withLock { $0.driver }?.setReading(false) }

    /// Has the server act without an event.
    func act(_ body: @Sendable (inout WebSocketConnection, WireInstant) -> Void) {
        state.withLock { $0.driver }?.withCore(.immediate, body)
    }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let core = WebSocketConnection(serverWith: configuration, at: timers.now)
        let driver = Driver(core: core, stream: pair.second, timers: timers)
        state.withLock { $0.driver = driver }
        driver.start(
            .init(
                receive: { [handler] events in
                    for event in events {
                        self.state.withLock { $0.events.append(event) }
                        handler(driver, event)
                    }
                },
                end: { _ in self.state.withLock { $0.ends += 1 } }
            )
        )
        return pair.first
    }

    var environment: LinkEnvironment {
        let timers = clock.linkTimers
        return LinkEnvironment(
            dialer: self,
            clock: timers,
            random: { 7 }
        )
    }

    func connect(
        through dialer: (any Dialer)? = nil,
        _ configure: (inout WebSocketClient.Configuration) -> Void = { _ in }
    ) async throws -> WebSocketClient {
        var configuration = WebSocketClient.Configuration()
        configure(&configuration)
        var environment = environment
        if let dialer { environment.dialer = dialer }
        return try await WebSocketClient.connect(
            to: .init(string: "ws://example.com/chat?room=1") ?? .init(filePath: "/"),
            configuration: configuration,
            environment: environment
        )
    }
}

/// Calls a closure just before the stream is told to hold the peer back.
struct HookedDialer: Dialer {
    let base: any Dialer
    let onHold: @Sendable () -> Void

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        Stream(
            base: try await base.dial(endpoint, timeout: timeout, timers: timers),
            onHold: onHold
        )
    }

    private final class Stream: ByteStream {
        private let base: any ByteStream
        private let onHold: @Sendable () -> Void

        init(base: any ByteStream, onHold: @escaping @Sendable () -> Void) {
            self.base = base
            self.onHold = onHold
        }

        func start(_ receiver: any ByteStreamReceiver) { base.start(receiver) }
        func write(_ bytes: UnsafeRawBufferPointer) throws(LinkError) -> Int {
            try base.write(bytes)
        }
        func read(into space: UnsafeMutableRawBufferPointer) throws(LinkError) -> ReadOutcome {
            try base.read(into: space)
        }
        func scheduleFlush() -> Bool { base.scheduleFlush() }
        func setReading(_ isReading: Bool) {
            if !isReading { onHold() }
            base.setReading(isReading)
        }
        func readAgain() { base.readAgain() }
        func finishWriting() { base.finishWriting() }
        func close() { base.close() }
    }
}

/// Runs a body on a new thread, in which it may block.
func onThread(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
        Thread.detachNewThread {
            body()
            continuation.resume()
        }
    }
}
