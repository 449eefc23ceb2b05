import Testing
import WebSocketWire
import WireCore
import WireTestSupport

/// A reader without a limit returns the parts of messages as they arrive.
@Suite("RFC 6455: messages in parts") struct MessagePartTests {
    private static func client() throws -> SocketHarness {
        try SocketHarness.open(SocketHarness.configuration(maximumMessageSize: nil))
    }

    /// The payloads of the message events, and the other events.
    private static func parts(
        _ harness: inout SocketHarness
    ) -> (parts: [[UInt8]], others: [WebSocketEvent]) {
        var (parts, others): ([[UInt8]], [WebSocketEvent]) = ([], [])
        for event in harness.events() {
            if case .message(let message) = event {
                parts.append(message.payload.bytes)
            } else {
                others.append(event)
            }
        }
        return (parts, others)
    }

    @Test("The bytes that have arrived are there at once, with control frames between them")
    func parts() throws {
        var client = try Self.client()
        let bytes =
            Frame.text("für", isFinal: false) + Frame.server(.ping, [1])
            + Frame.server(.continuation, [], isFinal: false)
            + Frame.server(.continuation, Array(" alle".utf8))
            + Frame.server(.binary, []) + Frame.server(.binary, [0xFF])
        for byte in bytes { client.receive([byte]) }
        let (parts, others) = Self.parts(&client)
        #expect(parts == (Array("für alle".utf8) + [0xFF]).map { [$0] })
        #expect(others == [.ping(ByteSlice(copying: [1]))])
        client.receive(bytes)
        #expect(
            Self.parts(&client).parts == [Array("für".utf8), Array(" alle".utf8), [0xFF]]
        )
        // 1 TiB is announced.
        client.receive([0x82, 0x7F, 0, 0, 1, 0, 0, 0, 0, 0, 7])
        #expect(Self.parts(&client).parts == [[7]])
    }

    @Test("Masked frames of a client, however they are cut")
    func masked() throws {
        var client = try SocketHarness.open()
        try client.core.send(.text, Array("Grüße".utf8))
        try client.core.send(.binary, [UInt8](0...255))
        let bytes = client.sent()
        for size in [1, 3, 100, bytes.count] {
            var server = SocketHarness.server(SocketHarness.configuration(maximumMessageSize: nil))
            for start in stride(from: 0, to: bytes.count, by: size) {
                server.receive(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(
                Self.parts(&server).parts.flatMap(\.self) == Array("Grüße".utf8) + [UInt8](0...255)
            )
        }
    }

    @Test("Text that is not UTF-8 fails at its first wrong byte, and at an incomplete end")
    func text() throws {
        for bytes in [
            Frame.server(.text, [0x61, 0xFF, 0x62], isFinal: false).dropLast(),
            Frame.server(.text, [0x61, 0xC3])[...],
            (Frame.server(.text, [0x61, 0xC3], isFinal: false) + Frame.server(.continuation, []))[
                ...
            ],
        ] {
            var client = try Self.client()
            for byte in bytes { client.receive([byte]) }
            #expect(Self.parts(&client).others == [.closed(.violation(.invalidText))])
        }
    }
}
