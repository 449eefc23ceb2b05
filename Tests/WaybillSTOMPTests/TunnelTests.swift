import HTTPWire
import Testing
import TransportTestSupport
import Waybill
import WaybillLink
import WaybillSTOMP
import WaybillTesting
import WebSocketWire
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// The bytes of a STOMP transport inside a WebSocket, from the server's side.
@Suite("STOMP transport in a WebSocket", .inSimulation, .timeLimit(.minutes(30))) struct TunnelTests
{
    /// A server that accepts the upgrade, records the messages, and sends what the test asks for.
    private final class Server: Dialer {
        private let pair = ByteStreamPair()
        private let driver: Driver<WebSocketConnection>
        private let choosesSubprotocol: Bool
        private let state = Locked((offers: [String](), messages: [WebSocketMessage]()))

        init(_ clock: ManualClock, choosesSubprotocol: Bool) {
            self.choosesSubprotocol = choosesSubprotocol
            driver = Driver(
                core: WebSocketConnection(
                    serverWith: WebSocketConfiguration { Array(repeating: 0, count: $0) },
                    at: .zero
                ),
                stream: pair.second,
                timers: clock.linkTimers
            )
        }

        /// The subprotocols that the client offered.
        var offers: [String] { state.withLock { $0.offers } }
        /// The messages from the client.
        var messages: [WebSocketMessage] { state.withLock { $0.messages } }
        /// The messages as text.
        var texts: [String] { messages.map { String(decoding: $0.payload.bytes, as: UTF8.self) } }

        func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            driver.start(.init(receive: { events in events.forEach(self.handle) }, end: { _ in }))
            return pair.first
        }

        func say(_ text: String) {
            driver.withCore(.immediate) { core, _ in try? core.send(.text, Array(text.utf8)) }
        }

        private func handle(_ event: WebSocketEvent) {
            switch event {
            case .requested(let head):
                let offers = head.headers.members("sec-websocket-protocol")
                state.withLock { $0.offers = offers }
                driver.withCore(.immediate) { core, _ in
                    core.accept(subprotocol: choosesSubprotocol ? offers.first : nil)
                }
            case .message(let message):
                state.withLock { $0.messages.append(message) }
                if message.payload.bytes.starts(with: "CONNECT".utf8) {
                    say("CONNECTED\nversion:1.2\nheart-beat:10000,10000\n\n\0")
                }
            default: break
            }
        }
    }

    @Test(
        "Subprotocols, the best first; one frame or heart-beat in each message, text where it is UTF-8",
        arguments: [true, false]
    )
    func messages(choosesSubprotocol: Bool) async throws {
        let clock = ManualClock()
        let server = Server(clock, choosesSubprotocol: choosesSubprotocol)
        var configuration = STOMPConfiguration()
        configuration.reconnection = .never
        configuration.receipts = .never
        let transport = try STOMPTransport(
            url: #require(URL(string: "ws://h/stomp")),
            configuration: configuration,
            environment: LinkEnvironment(
                dialer: server,
                clock: clock.linkTimers,
                random: { 0 }
            )
        )
        let provider = Provider<STOMPEntry>(transport: transport)
        try await provider.request(.connect)
        #expect(server.offers == ["v12.stomp", "v11.stomp", "v10.stomp"])
        try await provider.request(.send("a\0b", to: "t"))
        try await provider.request(.command(.send, topic: "t", body: .bytes([0xFF])))
        try await provider.request(.send("", to: "t"))
        clock.advance(by: .milliseconds(7_500))
        #expect(
            Array(server.texts.dropFirst()) == [
                "SEND\ncontent-length:3\ndestination:t\n\na\0b\0",
                "SEND\ncontent-length:1\ndestination:t\n\n\u{FFFD}\0",
                "SEND\ndestination:t\n\n\0", "\n",
            ]
        )
        #expect(server.messages.map(\.kind) == [.text, .text, .binary, .text, .text])
        // Several frames in one message, and one frame in several messages.
        let messages = try await provider.messages(.subscribe("t"))
        let head = "MESSAGE\ndestination:t\nmessage-id:m\nsubscription:1\n\n"
        server.say(head + "1\0\n" + head + "2\0" + head)
        server.say("3")
        server.say("\0")
        #expect(try await texts(3, messages) == ["1", "2", "3"])
    }
}
