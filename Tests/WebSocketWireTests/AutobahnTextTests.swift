import Testing
import WebSocketWire
import WireCore
import WireTestSupport

/// Autobahn's group 6: which bytes are UTF-8, and how early invalid text is detected.
@Suite("Autobahn's groups: text") struct AutobahnTextTests {
    /// Well-formed text (Unicode 15, table 3-7), by the range it comes from.
    static let valid: [Hex] = [
        "00", "7F", "48 65 6C 6C 6F", "C2 80", "DF BF", "E0 A0 80", "E1 80 80", "EC BF BF",
        "ED 80 80", "ED 9F BF", "EE 80 80", "EF BF BD", "EF BF BF", "F0 90 80 80", "F1 80 80 80",
        "F3 BF BF BF", "F4 8F BF BF",
        // Code points without a character are valid text.
        "EF BF BE", "F0 9F BF BE", "F0 9F BF BF", "F4 8F BF BE",
        "CE BA E1 BD B9 CF 83 CE BC CE B5", "EF BB BF 61",
    ]

    /// Invalid text, and the number of bytes after which it must be refused.
    static let invalid: [(Hex, Int)] = [
        // Continuation bytes without a first byte, and bytes that are valid nowhere.
        ("80", 1), ("BF", 1), ("61 80 BF", 2), ("FE", 1), ("FF", 1), ("FE FE FF FF", 1),
        // First bytes without a continuation.
        ("C2 20", 2), ("E1 20", 2), ("E1 80 20", 3), ("F1 20", 2), ("F1 80 80 20", 4),
        ("C2 C2 80", 2), ("E1 80 E1", 3),
        // Overlong forms.
        ("C0 80", 1), ("C0 AF", 1), ("C1 BF", 1), ("E0 80 AF", 2), ("E0 9F BF", 2),
        ("F0 80 80 AF", 2), ("F0 8F BF BF", 2), ("F8 80 80 80 AF", 1), ("FC 80 80 80 80 AF", 1),
        // Surrogates, alone and in pairs.
        ("ED A0 80", 2), ("ED AF BF", 2), ("ED B0 80", 2), ("ED BF BF", 2),
        ("ED A0 80 ED B0 80", 2),
        // Code points beyond U+10FFFF.
        ("F4 90 80 80", 2), ("F5 80 80 80", 1), ("F7 BF BF BF", 1), ("FB BF BF BF BF", 1),
        ("CE BA E1 BD B9 CF 83 CE BC CE B5 ED A0 80", 13),
        ("CE BA E1 BD B9 CF 83 CE BC CE B5 F4 90 80 80", 13),
    ]

    /// Text that ends within a character.
    static let unfinished: [Hex] = ["C2", "E1", "E1 80", "F1", "F1 80", "F1 80 80", "61 CE"]

    /// The same text in one frame, in one fragment for each byte, and with an empty fragment at either end.
    private static func ways(_ bytes: [UInt8]) -> [[[UInt8]]] {
        let each =
            bytes.enumerated().map { index, byte in
                Frame.server(
                    index == 0 ? .text : .continuation,
                    [byte],
                    isFinal: index == bytes.count - 1
                )
            }
        let padded = [
            Frame.server(.text, [], isFinal: false),
            Frame.server(.continuation, bytes, isFinal: false),
            Frame.server(.continuation, []),
        ]
        return [[Frame.server(.text, bytes)], each, padded]
    }

    @Test("6: well-formed text arrives, however it is cut")
    func accepted() throws {
        let template = try SocketHarness.open()
        for text in Self.valid {
            let message = WebSocketMessage(kind: .text, payload: ByteSlice(copying: text.bytes))
            for frames in Self.ways(text.bytes) {
                for pieces in [frames, frames.flatMap { $0 }.map { [$0] }] {
                    var client = template
                    for piece in pieces { client.receive(piece) }
                    #expect(client.events() == [.message(message)], "\(text.bytes)")
                }
            }
        }
    }

    @Test("6: ill-formed text is refused, however it is cut, with code 1007")
    func refused() throws {
        let template = try SocketHarness.open()
        for bytes in Self.invalid.map(\.0.bytes) + Self.unfinished.map(\.bytes) {
            for frames in Self.ways(bytes) {
                for pieces in [frames, frames.flatMap { $0 }.map { [$0] }] {
                    var client = template
                    for piece in pieces { client.receive(piece) }
                    #expect(client.events() == [.closed(.violation(.invalidText))], "\(bytes)")
                    #expect(
                        AutobahnTests.answers(client.sent())
                            == [.close(.invalidFramePayloadData, reason: "")]
                    )
                }
            }
        }
    }

    @Test("6: text is refused at the very byte that cannot be, within a frame and between frames")
    func failFast() throws {
        let template = try SocketHarness.open()
        for (text, position) in Self.invalid {
            // One frame whose length is larger than the bytes that arrive.
            var client = template
            client.receive([0x81, 0x7D])
            for (index, byte) in text.bytes.enumerated() {
                client.receive([byte])
                let isOver = !client.core.isOpen
                #expect(isOver == (index + 1 >= position), "\(text.bytes) at \(index)")
            }
            // One fragment for each byte, none of which is the last.
            var fragmented = template
            for (index, byte) in text.bytes.enumerated() {
                fragmented.receive(
                    Frame.server(index == 0 ? .text : .continuation, [byte], isFinal: false)
                )
                let isOver = !fragmented.core.isOpen
                #expect(isOver == (index + 1 >= position), "\(text.bytes) at \(index)")
            }
        }
    }

    @Test("6: binary messages may hold anything")
    func binary() throws {
        let template = try SocketHarness.open()
        for bytes in Self.invalid.map(\.0.bytes) + Self.unfinished.map(\.bytes) {
            var client = template
            client.receive(Frame.server(.binary, bytes))
            #expect(client.events() == [.binary(bytes)])
        }
    }

    @Test(
        "6 and 12: text in compressed messages is checked alike, whatever the cut",
        .enabled(if: Compression.isAvailable, "no zlib here")
    )
    func compressed() throws {
        let configuration = SocketHarness.configuration(deflate: PermessageDeflate())
        func outcome(_ bytes: [UInt8], cutAt position: Int) throws -> [WebSocketEvent] {
            var client = try SocketHarness.open(configuration, extensions: "permessage-deflate")
            // In a stored block the bytes stay readable and can be cut at any place.
            let size = UInt8(bytes.count)
            let block = [0x00, size, 0x00, ~size, 0xFF] + bytes + [0x00]
            client.receive(
                Frame.server(
                    .text,
                    Array(block[..<position]),
                    isFinal: false,
                    isCompressed: true
                ) + Frame.server(.continuation, Array(block[position...]))
            )
            return client.events()
        }
        for text in Self.valid {
            let message = WebSocketMessage(kind: .text, payload: ByteSlice(copying: text.bytes))
            for position in 0...text.bytes.count + 6 {
                #expect(try outcome(text.bytes, cutAt: position) == [.message(message)])
            }
        }
        for bytes in Self.invalid.map(\.0.bytes) + Self.unfinished.map(\.bytes) {
            for position in 0...bytes.count + 6 {
                #expect(
                    try outcome(bytes, cutAt: position) == [.closed(.violation(.invalidText))]
                )
            }
        }
    }
}
