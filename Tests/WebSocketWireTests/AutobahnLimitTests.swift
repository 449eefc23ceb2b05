import HTTPWire
import Testing
import WebSocketWire
import WireCore
import WireTestSupport

/// Autobahn's groups 9, 12 and 13: large messages, many messages, and compression in every mode.
@Suite("Autobahn's groups: size and compression", .timeLimit(.minutes(30)))
struct AutobahnLimitTests {
    // MARK: 9. Size

    @Test("9: a large message arrives whole, in one frame or in fragments of any size")
    func large() throws {
        let size = 4 << 20
        let bytes = [UInt8](repeating: 0x2A, count: size)
        let configuration = SocketHarness.configuration(maximumMessageSize: size)
        for kind in [WebSocketOpcode.text, .binary] {
            for fragment in [64, 4_096, 262_144, size] {
                var client = try SocketHarness.open(configuration)
                for start in stride(from: 0, to: size, by: fragment) {
                    client.receive(
                        Frame.server(
                            start == 0 ? kind : .continuation,
                            Array(bytes[start..<min(start + fragment, size)]),
                            isFinal: start + fragment >= size
                        )
                    )
                }
                guard case .message(let message)? = client.events().first else {
                    Issue.record("no message")
                    return
                }
                #expect(message.payload.count == size)
                #expect(message.payload.bytes == bytes)
            }
        }
    }

    @Test("9: a message of a mebibyte arrives in chops of any size, down to single bytes")
    func chops() throws {
        let bytes = [UInt8](repeating: 0x2A, count: 1 << 20)
        for kind in [WebSocketOpcode.text, .binary] {
            let frame = Frame.server(kind, bytes)
            // Only text is fed byte by byte: its validation does the most work for each piece.
            for chop in [kind == .text ? 1 : 16, 64, 1_024, 65_536] {
                var client = try SocketHarness.open()
                for start in stride(from: 0, to: frame.count, by: chop) {
                    client.receive(Array(frame[start..<min(start + chop, frame.count)]))
                }
                guard case .message(let message)? = client.events().first else {
                    Issue.record("no message")
                    return
                }
                #expect(message.payload.count == bytes.count)
            }
        }
    }

    @Test("9: many messages in one read come out one by one")
    func many() throws {
        for size in [0, 16, 64, 256] {
            var client = try SocketHarness.open()
            let frame = Frame.server(.binary, [UInt8](repeating: 1, count: size))
            client.receive((0..<1_000).flatMap { _ in frame })
            #expect(client.events().count == 1_000)
        }
    }

    @Test("9: fragments without a byte, however many, take up nothing")
    func emptyFragments() throws {
        var client = try SocketHarness.open()
        client.receive(Frame.text("a", isFinal: false))
        let empty = Frame.server(.continuation, [], isFinal: false)
        client.receive((0..<100_000).flatMap { _ in empty })
        #expect(client.events() == [])
        client.receive(Frame.server(.continuation, [0x62]))
        #expect(client.events() == [.text("ab")])
    }

    // MARK: 12 and 13. Compression

    /// The parameters that a client offers, and those that a server adds.
    struct Mode: Sendable, CustomTestStringConvertible {
        let client: PermessageDeflate
        let server: PermessageDeflate

        var testDescription: String { "\(client.offer) | \(server.response)" }
    }

    static let modes: [Mode] = {
        let parameters = [9, 12, 15].flatMap { bits in
            [false, true].map { isAlone in
                PermessageDeflate(
                    serverNoContextTakeover: isAlone,
                    clientNoContextTakeover: isAlone,
                    serverMaxWindowBits: bits,
                    clientMaxWindowBits: bits
                )
            }
        }
        return parameters.flatMap { client in
            parameters.map { Mode(client: client, server: $0) }
        }
    }()

    /// A client and a server that have completed the handshake with each other.
    private func pair(_ mode: Mode) throws -> (SocketHarness, SocketHarness) {
        var client = try SocketHarness.connecting(SocketHarness.configuration(deflate: mode.client))
        var server = SocketHarness(
            WebSocketConnection(
                serverWith: SocketHarness.configuration(deflate: mode.server),
                at: .zero
            )
        )
        server.receive(client.sent())
        _ = server.events()
        server.core.accept()
        client.receive(server.sent())
        guard case .opened(let opening)? = client.events().first,
            case .opened(let other)? = server.events().first
        else {
            Issue.record("not opened")
            return (client, server)
        }
        // Both ends must agree on the same parameters.
        #expect(opening.deflate == other.deflate)
        let agreed = try #require(opening.deflate)
        #expect(
            agreed.serverMaxWindowBits
                == min(mode.client.serverMaxWindowBits, mode.server.serverMaxWindowBits)
        )
        #expect(
            agreed.serverNoContextTakeover
                == (mode.client.serverNoContextTakeover || mode.server.serverNoContextTakeover)
        )
        return (client, server)
    }

    @Test(
        "12 and 13: messages of all sizes go both ways in every combination of the parameters",
        .enabled(if: Compression.isAvailable, "no zlib here"),
        arguments: modes
    )
    func combinations(_ mode: Mode) throws {
        var (client, server) = try pair(mode)
        for size in [0, 16, 256, 4_096, 65_536] {
            let words = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 5 % 26 + 97) }
            for _ in 0..<3 {
                try client.core.send(.text, words)
                server.receive(client.sent())
                try server.core.send(.text, words)
                client.receive(server.sent())
            }
            let message = WebSocketMessage(kind: .text, payload: ByteSlice(copying: words))
            let expected = Array(repeating: WebSocketEvent.message(message), count: 3)
            #expect(client.events() == expected)
            #expect(server.events() == expected)
        }
    }

    @Test(
        "12: a compressed message may come in fragments cut anywhere, and in chops",
        .enabled(if: Compression.isAvailable, "no zlib here")
    )
    func compressedFragments() throws {
        let mode = Mode(client: PermessageDeflate(), server: PermessageDeflate())
        var (client, server) = try pair(mode)
        var random = SeededGenerator(seed: 12)
        for _ in 0..<50 {
            let size = Int.random(in: 0...5_000, using: &random)
            let bytes = (0..<size).map { _ in UInt8.random(in: 97...104, using: &random) }
            try server.core.send(.text, bytes)
            let frame = server.sent()
            let length = frame[1] & 0x7F
            let payload = Array(frame.dropFirst(length < 126 ? 2 : 4))
            var position = 0
            var isFirst = true
            while isFirst || position < payload.count {
                let count = Int.random(in: 0...400, using: &random)
                let end = min(position + count, payload.count)
                let part = Frame.server(
                    isFirst ? .text : .continuation,
                    Array(payload[position..<end]),
                    isFinal: end == payload.count,
                    isCompressed: isFirst
                )
                for byte in part { client.receive([byte]) }
                position = end
                isFirst = false
            }
            let message = WebSocketMessage(kind: .text, payload: ByteSlice(copying: bytes))
            #expect(client.events().last == .message(message))
        }
    }

    @Test(
        "13: the first offer that can be taken is taken, the others are passed over",
        .enabled(if: Compression.isAvailable, "no zlib here")
    )
    func offers() {
        let rows: [(String, String?)] = [
            ("permessage-deflate", "permessage-deflate"),
            ("permessage-deflate; client_max_window_bits", "permessage-deflate"),
            (
                "permessage-deflate; client_max_window_bits=10",
                "permessage-deflate; client_max_window_bits=10"
            ),
            (
                "permessage-deflate; server_max_window_bits=10",
                "permessage-deflate; server_max_window_bits=10"
            ),
            (
                "permessage-deflate; server_max_window_bits=8, permessage-deflate",
                "permessage-deflate"
            ),
            ("permessage-deflate; unknown, x-webkit-deflate-frame", nil),
            (
                "x-other; a=\"b\", permessage-deflate; server_no_context_takeover",
                "permessage-deflate; server_no_context_takeover"
            ),
            ("permessage-deflate; server_max_window_bits=16", nil),
            ("permessage-deflate; client_max_window_bits=7", nil),
        ]
        for (offer, answer) in rows {
            let response = WebSocketServerHandshake.response(
                to: HTTPRequestHead(
                    method: "GET",
                    target: "/",
                    headers: ["Sec-WebSocket-Extensions": offer]
                ),
                subprotocol: nil,
                deflate: PermessageDeflate(),
                headers: [:]
            )
            #expect(response.head.headers.first("sec-websocket-extensions") == answer, "\(offer)")
        }
    }
}
