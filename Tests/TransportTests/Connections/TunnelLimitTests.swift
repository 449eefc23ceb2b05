import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillMQTT
import WaybillSTOMP
import WaybillTesting
import WebSocketWire
import WireCore
import WireTestSupport

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Messages above the limit that a server puts into one message of a WebSocket, as most servers do.
@Suite("Tunnels: messages above the limit", .inSimulation, .timeLimit(.minutes(30)))
struct TunnelLimitTests {
    /// A server that answers the message that begins with given bytes, and records all others.
    private final class Server: Dialer {
        typealias Script = [(start: [UInt8], answer: [[UInt8]])]

        private let pair = ByteStreamPair(capacity: 1 << 20)
        private let driver: Driver<WebSocketConnection>
        private let script: Script
        private let others = Locked<[[UInt8]]>([])

        init(_ script: Script, _ deflate: PermessageDeflate?, _ clock: ManualClock) {
            var configuration = WebSocketConfiguration { Array(repeating: 0, count: $0) }
            configuration.deflate = deflate
            self.script = script
            driver = Driver(
                core: WebSocketConnection(serverWith: configuration, at: .zero),
                stream: pair.second,
                timers: clock.linkTimers
            )
        }

        /// The messages without an answer.
        var received: [[UInt8]] { others.withLock { $0 } }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            driver.start(.init(receive: { events in events.forEach(self.handle) }, end: { _ in }))
            return pair.first
        }

        private func handle(_ event: WebSocketEvent) {
            switch event {
            case .requested(let head):
                let offers = head.headers.members("sec-websocket-protocol")
                driver.withCore(.immediate) { core, _ in core.accept(subprotocol: offers.first) }
            case .message(let message):
                let bytes = message.payload.bytes
                guard let answer = script.first(where: { bytes.starts(with: $0.start) })?.answer
                else { return others.withLock { $0.append(bytes) } }
                driver.withCore(.immediate) { core, _ in
                    for message in answer { try? core.send(.binary, message) }
                }
            default: break
            }
        }
    }

    /// 5 MiB, which a compressor makes short.
    private static let long = [UInt8](repeating: 0x78, count: 5 << 20)

    /// PUBLISH of QoS 1 to `t`.
    private static func publish(_ identifier: UInt8, _ payload: [UInt8]) -> [UInt8] {
        var rest = payload.count + 5
        var length: [UInt8] = []
        repeat {
            length.append(UInt8(rest % 128) | (rest > 127 ? 128 : 0))
            rest /= 128
        } while rest > 0
        return [0x32] + length + [0, 1, 0x74, 0, identifier] + payload
    }

    private static func message(_ number: Int, _ body: [UInt8]) -> [UInt8] {
        Array(
            "MESSAGE\nsubscription:1\nmessage-id:\(number)\nack:\(number)\ndestination:t\n\n".utf8
        ) + body + [0]
    }

    /// Checks that the second of three messages is skipped and told, and that the connection lives.
    private func check(
        _ transport: any Transport,
        _ subscribe: LoopbackEntry,
        answeredOn server: Server,
        by expected: [[UInt8]]
    ) async throws {
        let drops = Locked<[TransportEvent]>([])
        let events = transport.events
        let reader = Task {
            for await event in events where [.dropped, .disconnected].contains(event.kind) {
                drops.withLock { $0.append(event) }
            }
        }
        let provider = Provider<LoopbackEntry>(transport: transport)
        try await provider.request(.connect)
        let messages = try await provider.messages(subscribe)
        #expect(try await texts(2, messages) == ["first", "last"])
        await untilQuiet()
        #expect(drops.withLock { $0.map(\.dropReason) } == [.tooLarge])
        #expect(drops.withLock { $0.first?.byteCount } == Self.long.count)
        // Several acknowledgements may have come in one message.
        let received = server.received.flatMap(\.self)
        #expect(expected.allSatisfy { received.contains($0) })
        reader.cancel()
    }

    private static let deflates: [PermessageDeflate?] = [nil, PermessageDeflate()]

    @Test("MQTT", arguments: deflates)
    func mqtt(deflate: PermessageDeflate?) async throws {
        let clock = ManualClock()
        let server = Server(
            [
                ([0x10], [[0x20, 2, 0, 0]]),
                (
                    [0x82],
                    [
                        [0x90, 3, 0, 1, 1] + Self.publish(1, Array("first".utf8)),
                        Self.publish(2, Self.long), Self.publish(3, Array("last".utf8)),
                    ]
                ),
            ],
            deflate,
            clock
        )
        var configuration = MQTTConfiguration(version: .v3_1_1)
        configuration.reconnection = .never
        configuration.webSocket.offersCompression = deflate != nil
        let transport = try MQTTTransport(
            url: #require(URL(string: "ws://h/mqtt")),
            configuration: configuration,
            environment: LinkEnvironment(dialer: server, clock: clock.linkTimers, random: { 0 })
        )
        try await check(
            transport,
            .subscribe("t"),
            answeredOn: server,
            by: [[0x40, 2, 0, 1], [0x40, 2, 0, 2], [0x40, 2, 0, 3]]
        )
    }

    @Test("STOMP", arguments: deflates)
    func stomp(deflate: PermessageDeflate?) async throws {
        let clock = ManualClock()
        let server = Server(
            [
                (Array("CONNECT".utf8), [Array("CONNECTED\nversion:1.2\n\n\0".utf8)]),
                (
                    Array("SUBSCRIBE".utf8),
                    [
                        Self.message(1, Array("first".utf8)), Self.message(2, Self.long),
                        Self.message(3, Array("last".utf8)),
                    ]
                ),
            ],
            deflate,
            clock
        )
        var configuration = STOMPConfiguration()
        configuration.reconnection = .never
        configuration.receipts = .never
        configuration.webSocket.offersCompression = deflate != nil
        let transport = try STOMPTransport(
            url: #require(URL(string: "ws://h/stomp")),
            configuration: configuration,
            environment: LinkEnvironment(dialer: server, clock: clock.linkTimers, random: { 0 })
        )
        try await check(
            transport,
            .subscribe("t"),
            answeredOn: server,
            by: [1, 2, 3].map { Array("ACK\nid:\($0)\n\n\0".utf8) }
        )
    }
}
