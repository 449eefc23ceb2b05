import Testing
import WebSocketWire
import WireCore
import WireTestSupport

@Suite("zlib is there when it must be") struct DeflateRequired {
    @Test("With WAYBILL_REQUIRE_SERVERS=1 compression may not be skipped")
    func required() {
        #expect(Compression.isAvailable || !TestRequirements.areRequired)
    }
}

/// Compression (RFC 7692), with the system's zlib.
@Suite(
    "RFC 7692: permessage-deflate",
    .enabled(if: Compression.isAvailable, "no zlib here"),
    // The half million mutated frames of the extended set take more than a minute to inflate.
    .timeLimit(.minutes(30))
)
struct DeflateTests {
    private static func client(
        _ extensions: String = "permessage-deflate",
        offer: PermessageDeflate = PermessageDeflate(),
        maximumMessageSize: Int? = 1 << 20
    ) throws -> SocketHarness {
        try SocketHarness.open(
            SocketHarness.configuration(deflate: offer, maximumMessageSize: maximumMessageSize),
            extensions: extensions
        )
    }

    @Test("The examples of 7.2.3")
    func examples() throws {
        var client = try Self.client()
        client.receive("C1 07 F2 48 CD C9 C9 07 00")
        client.receive("41 03 F2 48 CD 80 04 C9 C9 07 00")
        // The second message uses the context of the first (7.2.3.2).
        client.receive("C1 05 F2 00 11 00 00")
        // A block without compression (7.2.3.3).
        client.receive("C1 0B 00 05 00 FA FF 48 65 6C 6C 6F 00")
        // A block with the "final" bit (7.2.3.4).
        client.receive("C1 08 F3 48 CD C9 C9 07 00 00")
        // Two blocks (7.2.3.5).
        client.receive("C1 0D F2 48 05 00 00 00 FF FF CA C9 C9 07 00")
        // An empty message (7.2.3.6).
        client.receive("C1 01 00")
        #expect(client.events() == Array(repeating: .text("Hello"), count: 6) + [.text("")])
    }

    @Test("What leaves is what 7.2.3 shows, with and without the context")
    func compressing() throws {
        func sent(_ extensions: String) throws -> [[UInt8]] {
            var client = try Self.client(extensions)
            return try (0..<2).map { _ in
                try client.core.send(.text, Array("Hello".utf8))
                let frame = client.sent()
                let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
                #expect(frame[0] == 0xC1)
                return frame.dropFirst(6).enumerated().map { $1 ^ key[$0 % 4] }
            }
        }
        let first = Hex("F2 48 CD C9 C9 07 00").bytes
        let second = Hex("F2 00 11 00 00").bytes
        #expect(try sent("permessage-deflate") == [first, second])
        #expect(try sent("permessage-deflate; client_no_context_takeover") == [first, first])
    }

    @Test("Empty messages, long ones and ones that do not shrink go both ways in every mode")
    func roundTrips() throws {
        var random = SeededGenerator(seed: 7_692)
        let answers = [
            "permessage-deflate",
            "permessage-deflate; client_max_window_bits=9; server_max_window_bits=9",
            "permessage-deflate; client_max_window_bits=15; server_no_context_takeover",
            "permessage-deflate; client_no_context_takeover; server_no_context_takeover",
            "permessage-deflate; client_max_window_bits=8",
        ]
        for answer in answers {
            var client = try Self.client(answer)
            var server = try pairedServer(with: answer)
            for size in [0, 1, 63, 64, 1_000, 70_000, 400_000] {
                let noise = (0..<size).map { _ in UInt8.random(in: 0...255, using: &random) }
                let words = (0..<size).map { UInt8(truncatingIfNeeded: $0 / 7 % 26 + 97) }
                for payload in [noise, words] {
                    try client.core.send(.binary, payload)
                    server.receive(client.sent())
                    #expect(server.events() == [.binary(payload)])
                    try server.core.send(.binary, payload)
                    client.receive(server.sent())
                    #expect(client.events() == [.binary(payload)])
                }
            }
        }
    }

    /// Makes a server with the same parameters.
    private func pairedServer(with answer: String) throws -> SocketHarness {
        var configuration = SocketHarness.configuration(
            deflate: PermessageDeflate(
                serverNoContextTakeover: answer.contains("server_no"),
                clientNoContextTakeover: answer.contains("client_no"),
                serverMaxWindowBits: answer.contains("server_max_window_bits=9") ? 9 : 15,
                clientMaxWindowBits: answer.contains("client_max_window_bits=9") ? 9 : 15
            )
        )
        configuration.compressionThreshold = 0
        var server = SocketHarness(WebSocketConnection(serverWith: configuration, at: .zero))
        server.receive(
            Array(
                """
                GET / HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
                Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n
                """.utf8
            )
        )
        server.core.accept()
        _ = server.events()
        _ = server.sent()
        return server
    }

    @Test("A bomb is stopped at the limit, and text fails within a compressed message")
    func limits() throws {
        var server = try pairedServer(with: "")
        try server.core.send(.binary, [UInt8](repeating: 0, count: 4 << 20))
        let bomb = server.sent()
        #expect(bomb.count < 10_000)
        var client = try Self.client()
        client.receive(bomb)
        #expect(client.events() == [.closed(.violation(.messageTooBig(maximum: 1 << 20)))])

        var exact = try Self.client(maximumMessageSize: 4 << 20)
        exact.receive(bomb)
        #expect(exact.events() == [.binary([UInt8](repeating: 0, count: 4 << 20))])

        try server.core.send(.text, [0x61, 0xFF, 0x61])
        var strict = try Self.client()
        // The new client lacks the old context, so this message is compressed without one.
        strict.receive("C1 05 4A FC CF 00 00")
        _ = strict.events()
        var fresh = try pairedServer(with: "")
        try fresh.core.send(.text, [0x61, 0xFF, 0x61])
        var reader = try Self.client()
        reader.receive(fresh.sent())
        #expect(reader.events() == [.closed(.violation(.invalidText))])
    }

    @Test("Without a limit a bomb is decompressed in bounded steps, and nothing is kept")
    func steps() throws {
        var server = try pairedServer(with: "")
        try server.core.send(.binary, [UInt8](repeating: 0, count: 64 << 20))
        var client = try Self.client(maximumMessageSize: nil)
        client.buffer.append(server.sent())
        var count = 0
        repeat {
            client.core.receive(&client.buffer, at: client.now)
            var turn = 0
            for event in client.events() {
                guard case .message(let part) = event else {
                    Issue.record("\(event)")
                    continue
                }
                turn += part.payload.count
            }
            #expect(turn <= 4 << 20)
            count += turn
        } while client.core.hasMoreInput
        #expect(count == 64 << 20)
        #expect(client.buffer.count == 0)
    }

    @Test("The limit is exact to the byte, and may be as high as a number can be")
    func exactLimit() throws {
        for size in [1, 1_023, 1_024, 1_025, 10_000] {
            let payload = [UInt8](repeating: 7, count: size)
            for limit in [size - 1, size, size + 1, .max] {
                var server = try pairedServer(with: "")
                try server.core.send(.binary, payload)
                let frame = server.sent()
                for pieces in [[frame], frame.map { [$0] }] {
                    var client = try Self.client(maximumMessageSize: limit)
                    for piece in pieces { client.receive(piece) }
                    let expected: WebSocketEvent =
                        limit >= size
                        ? .binary(payload)
                        : .closed(.violation(.messageTooBig(maximum: limit)))
                    #expect(client.events() == [expected], "\(size) of \(limit)")
                }
            }
        }
    }

    @Test("Blocks that say they are the last may come by the hundred thousand (7.2.3.4)")
    func finalBlocks() throws {
        // 200,000 empty final blocks of two bytes, then a "Hello" that refers back across them.
        let empty = Array(repeating: [0x03, 0x00] as [UInt8], count: 200_000).flatMap { $0 }
        // A full window precedes them, which every block has to keep.
        var server = try pairedServer(with: "")
        try server.core.send(.binary, [UInt8](repeating: 0, count: 40_000))
        var client = try Self.client()
        client.receive(server.sent())
        _ = client.events()
        client.receive(
            Frame.server(
                .text,
                Hex("F2 48 CD C9 C9 07 00 00 00 FF FF").bytes + empty
                    + Hex("F2 00 11 00 00").bytes,
                isCompressed: true
            )
        )
        #expect(client.events() == [.text("HelloHello")])
    }

    @Test("Data that is not deflate's fails the connection")
    func garbage() throws {
        var client = try Self.client()
        client.receive("C2 04 FF FF FF FF")
        #expect(client.events() == [.closed(.violation(.invalidCompressedData))])
    }

    @Test("RSV1 belongs to the first frame of a message only (6.1)")
    func reservedBit() throws {
        for hex in ["41 03 F2 48 CD C0 04 C9 C9 07 00", "C9 00"] {
            var client = try Self.client()
            client.receive(Hex(stringLiteral: hex))
            #expect(client.events() == [.closed(.violation(.reservedBits))])
        }
    }

    @Test("A message that is not compressed may come all the same (6)")
    func plain() throws {
        var client = try Self.client()
        client.receive(Frame.text("plain"))
        client.receive("C1 07 F2 48 CD C9 C9 07 00")
        #expect(client.events() == [.text("plain"), .text("Hello")])
    }

    @Test("A control frame may come between compressed fragments (6.1)")
    func controlBetween() throws {
        var client = try Self.client()
        client.receive("41 03 F2 48 CD 89 00 80 04 C9 C9 07 00")
        #expect(client.events() == [.ping(.empty), .text("Hello")])
    }

    @Test("Short messages leave as they are")
    func threshold() throws {
        var configuration = SocketHarness.configuration(deflate: PermessageDeflate())
        configuration.compressionThreshold = 6
        var client = try SocketHarness.open(configuration, extensions: "permessage-deflate")
        try client.core.send(.text, Array("Hello".utf8))
        #expect(client.sentHex() == "81 85 37 FA 21 3D 7F 9F 4D 51 58")
        try client.core.send(.text, Array("Hello!".utf8))
        #expect(client.sent().first == 0xC1)
    }

    @Test("What a server may and may not answer to an offer (7.1)")
    func negotiation() throws {
        func agreed(_ answer: String, _ offer: PermessageDeflate = PermessageDeflate())
            -> PermessageDeflate?
        {
            WebSocketExtension.parse([answer])?.first.flatMap { offer.agreed(with: $0) }
        }
        let plain = PermessageDeflate()
        #expect(agreed("permessage-deflate") == plain)
        #expect(agreed("permessage-deflate; server_max_window_bits=10")?.serverMaxWindowBits == 10)
        #expect(
            agreed("permessage-deflate; client_max_window_bits=\"10\"")?.clientMaxWindowBits == 10
        )
        for bad in [
            "client_max_window_bits", "client_max_window_bits=7", "client_max_window_bits=16",
            "client_max_window_bits=010", "client_max_window_bits=x", "server_max_window_bits",
            "server_no_context_takeover=1",
            "client_no_context_takeover; client_no_context_takeover",
            "unknown", "server_max_window_bits=9; server_max_window_bits=9",
        ] {
            #expect(agreed("permessage-deflate; \(bad)") == nil, "\(bad)")
        }
        let silent = PermessageDeflate(clientMaxWindowBits: nil)
        #expect(agreed("permessage-deflate; client_max_window_bits=10", silent) == nil)
        let forgetful = PermessageDeflate(serverNoContextTakeover: true)
        #expect(agreed("permessage-deflate", forgetful) == nil)
        #expect(agreed("permessage-deflate; server_no_context_takeover", forgetful) != nil)
        let narrow = PermessageDeflate(serverMaxWindowBits: 10)
        #expect(agreed("permessage-deflate", narrow) == nil)
        let small = PermessageDeflate(serverNoContextTakeover: true, serverMaxWindowBits: 10)
        #expect(agreed("permessage-deflate", small) == nil)
        #expect(
            agreed(
                "permessage-deflate; server_no_context_takeover; server_max_window_bits=11",
                small
            )
                == nil
        )
        #expect(
            agreed(
                "permessage-deflate; server_no_context_takeover; server_max_window_bits=9",
                small
            )?
            .serverMaxWindowBits == 9
        )
        #expect(
            small.offer
                == "permessage-deflate; client_max_window_bits; server_max_window_bits=10; server_no_context_takeover"
        )
    }

    @Test("Mutated compressed frames end in events, a request for more or a violation")
    func mutations() async throws {
        let seeds = [
            Hex("C1 07 F2 48 CD C9 C9 07 00").bytes, Hex("41 03 F2 48 CD 80 04 C9 C9 07 00").bytes,
            Hex("C1 0D F2 48 05 00 00 00 FF FF CA C9 C9 07 00").bytes,
        ]
        // Each input allocates zlib's memory anew, so there are fewer inputs here.
        await Mutations.run(seeds, count: Mutations.count / 20, seed: 0x7692) { bytes in
            guard var client = try? Self.client(maximumMessageSize: 4_096) else { return }
            client.receive(bytes)
            for case .message(let message) in client.events() {
                #expect(message.payload.count <= 4_096)
            }
        }
    }
}
