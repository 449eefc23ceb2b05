import Testing
import WebSocketWire
import WireCore
import WireTestSupport

/// The base framing protocol (RFC 6455, 5.2, 5.3 and 5.7).
@Suite("RFC 6455, 5.2: frames") struct FrameTests {
    typealias Input = WebSocketReader.Input

    private static func message(_ kind: WebSocketMessage.Kind, _ bytes: [UInt8]) -> Input {
        .message(WebSocketMessage(kind: kind, payload: ByteSlice(copying: bytes)))
    }

    /// Each row: a name, the bytes, and the frame that a client reads. The first four are the examples of 5.7.
    static let clientRows: [(String, [UInt8], Input)] = [
        (
            "a single-frame unmasked text message", Hex("81 05 48 65 6C 6C 6F").bytes,
            message(.text, Array("Hello".utf8))
        ),
        (
            "a fragmented unmasked text message", Hex("01 03 48 65 6C 80 02 6C 6F").bytes,
            message(.text, Array("Hello".utf8))
        ),
        (
            "an unmasked ping", Hex("89 05 48 65 6C 6C 6F").bytes,
            .ping(ByteSlice(copying: Array("Hello".utf8)))
        ),
        (
            "256 bytes of binary", Hex("82 7E 01 00").bytes + [UInt8](repeating: 7, count: 256),
            message(.binary, [UInt8](repeating: 7, count: 256))
        ),
        (
            "64 KiB of binary",
            Hex("82 7F 00 00 00 00 00 01 00 00").bytes + [UInt8](repeating: 9, count: 65_536),
            message(.binary, [UInt8](repeating: 9, count: 65_536))
        ),
        ("an empty text", Hex("81 00").bytes, message(.text, [])),
        ("an empty binary message", Hex("82 00").bytes, message(.binary, [])),
        ("an empty message of three fragments", Hex("01 00 00 00 80 00").bytes, message(.text, [])),
        ("a pong", Hex("8A 00").bytes, .pong(.empty)),
        ("a Close without a code", Hex("88 00").bytes, .close(.noStatusReceived, reason: "")),
        ("a Close", Hex("88 04 03 E8 6F 6B").bytes, .close(.normalClosure, reason: "ok")),
        (
            "text of two, three and four bytes a character", Frame.text("é€😀é€😀"),
            message(.text, Array("é€😀é€😀".utf8))
        ),
    ]

    @Test("What a client reads, in every way that a network may deliver it")
    func clientTable() {
        let verifier = DecoderVerifier<Input> {
            var reader = WebSocketReader(role: .client, maximumMessageSize: 1 << 20)
            return { try reader.next(&$0) }
        }
        #expect(verifier.verify(Self.clientRows.map { ($0.1, $0.2) }) == [])
    }

    @Test("What a server reads, in every way that a network may deliver it")
    func serverTable() {
        let rows: [([UInt8], Input)] = [
            (
                Hex("81 85 37 FA 21 3D 7F 9F 4D 51 58").bytes,
                Self.message(.text, Array("Hello".utf8))
            ),
            (
                Hex("89 85 37 FA 21 3D 7F 9F 4D 51 58").bytes,
                .ping(ByteSlice(copying: Array("Hello".utf8)))
            ),
            (
                Hex("01 83 37 FA 21 3D 7F 9F 4D 80 82 37 FA 21 3D 5B 95").bytes,
                Self.message(.text, Array("Hello".utf8))
            ),
            (Hex("82 80 00 00 00 00").bytes, Self.message(.binary, [])),
        ]
        let verifier = DecoderVerifier<Input> {
            var reader = WebSocketReader(role: .server, maximumMessageSize: 1 << 20)
            return { try reader.next(&$0) }
        }
        #expect(verifier.verify(rows) == [])
    }

    @Test(
        "Lengths are written in as few bytes as they need, and read back (5.2)",
        arguments: [
            (0, 2), (1, 2), (124, 2), (125, 2), (126, 4), (127, 4), (65_534, 4), (65_535, 4),
            (65_536, 10), (65_537, 10), (1 << 40, 10),
        ]
    )
    func lengthBoundaries(_ length: Int, _ byteCount: Int) throws {
        for key in [nil, UInt32(1)] {
            var writer = ByteWriter()
            let header = WebSocketFrameHeader(
                opcode: .binary,
                maskingKey: key,
                payloadByteCount: length
            )
            header.encode(into: &writer)
            #expect(writer.count == byteCount + (key == nil ? 0 : 4))
            let role: WebSocketRole = key == nil ? .client : .server
            let bytes = writer.bytes
            try bytes.withUnsafeBytes { bytes in
                let found = try #require(
                    try WebSocketFrameHeader.decode(bytes, role: role, allowsCompression: false)
                )
                #expect(found.header == header)
                #expect(found.byteCount == bytes.count)
                for count in 0..<bytes.count {
                    let part = UnsafeRawBufferPointer(rebasing: bytes[..<count])
                    let early = try WebSocketFrameHeader.decode(
                        part,
                        role: role,
                        allowsCompression: false
                    )
                    #expect(early == nil)
                }
            }
        }
    }

    @Test("The announcement of a message without limit takes no memory by itself")
    func announcement() throws {
        var reader = WebSocketReader(role: .client, maximumMessageSize: .max)
        var buffer = ReceiveBuffer(capacity: 16)
        buffer.append(Hex("82 7F 7F FF FF FF FF FF FF FF 01").bytes)
        #expect(try reader.next(&buffer) == nil)
    }

    @Test("A client masks every frame with its key; a server masks none (5.3)")
    func masking() throws {
        var client = try SocketHarness.open()
        try client.core.send(.text, Array("Hello".utf8))
        #expect(client.sentHex() == "81 85 37 FA 21 3D 7F 9F 4D 51 58")
        try client.core.ping(Array("Hello".utf8))
        #expect(client.sentHex() == "89 85 37 FA 21 3D 7F 9F 4D 51 58")
        var server = SocketHarness.server()
        try server.core.send(.text, Array("Hello".utf8))
        #expect(server.sentHex() == "81 05 48 65 6C 6C 6F")
    }

    @Test("Each frame has a key of its own, fetched in advance")
    func freshKeys() {
        var writer = WebSocketWriter(role: .client) { count in (0..<count).map { UInt64($0) + 1 } }
        var seen: Set<[UInt8]> = []
        for _ in 0..<64 {
            [UInt8](arrayLiteral: 1).withUnsafeBytes { writer.write(.binary, $0) }
            let frame = writer.outbound.takeBytes()
            seen.insert(Array(frame[2..<6]))
        }
        // The 32 low halves differ. The high halves of such small numbers are all zero, which makes one more value.
        #expect(seen.count == 33)
    }

    @Test("Masking agrees with the definition at every length and offset (5.3)")
    func maskingDefinition() {
        let key: [UInt8] = [0x37, 0xFA, 0x21, 0x3D]
        for count in 0...67 {
            for offset in 0..<5 {
                let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31) }
                let expected = bytes.enumerated().map { $1 ^ key[($0 + offset) % 4] }
                var masked = [UInt8](repeating: 0, count: count)
                masked.withUnsafeMutableBytes { target in
                    guard let base = target.baseAddress else { return }
                    bytes.withUnsafeBytes {
                        WebSocketMasking.apply($0, to: base, key: SocketHarness.key, offset: offset)
                    }
                }
                #expect(masked == expected)
            }
        }
    }
}
