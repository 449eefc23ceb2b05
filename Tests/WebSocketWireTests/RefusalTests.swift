import Testing
import WebSocketWire
import WireCore
import WireTestSupport

/// Input that must fail a connection, and the close code (RFC 6455, 5, 7 and 8).
@Suite("RFC 6455, 7.1.7: failing the connection") struct RefusalTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        let violation: WebSocketViolation
        let code: UInt16

        init(_ name: String, _ hex: Hex, _ violation: WebSocketViolation, _ code: UInt16 = 1_002) {
            self.name = name
            bytes = hex.bytes
            self.violation = violation
            self.code = code
        }

        var testDescription: String { name }
    }

    static let rows: [Row] = [
        Row("RSV1 without an extension", "C1 00", .reservedBits),
        Row("RSV2", "A1 00", .reservedBits),
        Row("RSV3", "91 00", .reservedBits),
        Row("RSV1 on a ping", "C9 00", .reservedBits),
        Row("opcode 3", "83 00", .reservedOpcode(3)),
        Row("opcode 7", "87 00", .reservedOpcode(7)),
        Row("opcode 11", "8B 00", .reservedOpcode(11)),
        Row("opcode 15", "8F 00", .reservedOpcode(15)),
        Row("a length of 125 in two bytes", "82 7E 00 7D", .malformedLength),
        Row("a length of 65,535 in eight", "82 7F 00 00 00 00 00 00 FF FF", .malformedLength),
        Row("a length with the highest bit", "82 7F 80 00 00 00", .malformedLength),
        Row("a masked frame from a server", "81 80", .maskedFrame),
        Row("a ping of 126 bytes", "89 7E", .controlFrameTooLong),
        Row("a Close of 126 bytes", "88 7E 00 7E", .controlFrameTooLong),
        Row("a ping in fragments", "09 00", .fragmentedControlFrame),
        Row("a Close in fragments", "08 00", .fragmentedControlFrame),
        Row("a continuation of nothing", "80 00", .unexpectedContinuation),
        Row("a continuation after a message", "81 00 00 00", .unexpectedContinuation),
        Row("a text within a text", "01 01 61 81 01 62", .messageInterrupted),
        Row("a binary message within a text", "01 01 61 02 00", .messageInterrupted),
        Row("Latin-1 as text", "81 01 E9", .invalidText, 1_007),
        Row("half a character at the end", "81 02 61 C3", .invalidText, 1_007),
        Row("half a character at the end of fragments", "01 01 61 80 01 C3", .invalidText, 1_007),
        Row("a surrogate", "81 03 ED A0 80", .invalidText, 1_007),
        Row("an overlong form", "81 02 C0 AF", .invalidText, 1_007),
        Row("beyond U+10FFFF", "81 04 F4 90 80 80", .invalidText, 1_007),
        Row("a Close with half a code", "88 01 03", .malformedClose),
        Row("a Close with code 0", "88 02 00 00", .invalidCloseCode(0)),
        Row("a Close with code 999", "88 02 03 E7", .invalidCloseCode(999)),
        Row("a Close with code 1004", "88 02 03 EC", .invalidCloseCode(1_004)),
        Row("a Close with code 1005", "88 02 03 ED", .invalidCloseCode(1_005)),
        Row("a Close with code 1006", "88 02 03 EE", .invalidCloseCode(1_006)),
        Row("a Close with code 1015", "88 02 03 F7", .invalidCloseCode(1_015)),
        Row("a Close with code 1016", "88 02 03 F8", .invalidCloseCode(1_016)),
        Row("a Close with code 1100", "88 02 04 4C", .invalidCloseCode(1_100)),
        Row("a Close with code 2999", "88 02 0B B7", .invalidCloseCode(2_999)),
        Row("a Close with code 5000", "88 02 13 88", .invalidCloseCode(5_000)),
        Row("a Close with code 65535", "88 02 FF FF", .invalidCloseCode(65_535)),
        Row("a reason that is not UTF-8", "88 03 03 E8 FF", .invalidText, 1_007),
        Row("a message over the limit", "82 7E 04 01", .messageTooBig(maximum: 1_024), 1_009),
        Row(
            "fragments over the limit",
            "02 01 00 80 7E 04 00",
            .messageTooBig(maximum: 1_024),
            1_009
        ),
    ]

    @Test(
        "Each is answered with Close and its code, and nothing is heard after it",
        arguments: rows
    )
    func refusal(_ row: Row) throws {
        for pieces in [[row.bytes], row.bytes.map { [$0] }] {
            var client = try SocketHarness.open(
                SocketHarness.configuration(maximumMessageSize: 1_024)
            )
            for piece in pieces { client.receive(piece) }
            client.receive(Frame.text("too late"))
            #expect(client.events().last == .closed(.violation(row.violation)))
            let frames = serverFrames(client.sent())
            #expect(
                frames == [.close(WebSocketCloseCode(rawValue: row.code), reason: "")],
                "\(row.name)"
            )
            #expect(!client.core.isFinished)
            client.core.receiveEndOfStream(at: client.now)
            #expect(client.core.isFinished)
            #expect(client.events() == [])
        }
    }

    /// Reads a client's bytes as a server does.
    private func serverFrames(_ bytes: [UInt8]) -> [WebSocketReader.Input] {
        var reader = WebSocketReader(role: .server, maximumMessageSize: 1 << 20)
        var buffer = ReceiveBuffer()
        buffer.append(bytes)
        var inputs: [WebSocketReader.Input] = []
        while let input = try? reader.next(&buffer) { inputs.append(input) }
        return inputs
    }

    @Test("A server refuses frames without a mask (5.1)")
    func unmaskedFrame() {
        var server = SocketHarness.server()
        server.receive("81 00")
        #expect(server.events() == [.closed(.violation(.unmaskedFrame))])
        #expect(server.sentHex() == "88 02 03 EA")
    }

    @Test("Text fails at the first byte that cannot be, before its frame is complete (8.1)")
    func failFast() throws {
        // Invalid UTF-8 in a frame that announces 16 bytes. A strict reader refuses it before the frame is complete.
        var client = try SocketHarness.open()
        client.receive("81 10 CE BA E1 BD B9 CF 83 CE BC CE B5")
        #expect(client.events() == [])
        client.receive("F4 90")
        #expect(client.events() == [.closed(.violation(.invalidText))])

        var fragmented = try SocketHarness.open()
        fragmented.receive("01 02 CE BA 00 7F 00 00 00 00 00 01 00 00 ED")
        #expect(fragmented.events() == [])
        fragmented.receive("A0")
        #expect(fragmented.events() == [.closed(.violation(.invalidText))])
    }

    @Test("Every violation that there is has a row")
    func complete() {
        // Gives each case a number. The switch does not compile until a new case is listed.
        func label(_ violation: WebSocketViolation) -> Int {
            switch violation {
            case .reservedBits: 0
            case .reservedOpcode: 1
            case .malformedLength: 2
            case .unmaskedFrame: 3
            case .maskedFrame: 4
            case .controlFrameTooLong: 5
            case .fragmentedControlFrame: 6
            case .unexpectedContinuation: 7
            case .messageInterrupted: 8
            case .invalidText: 9
            case .messageTooBig: 10
            case .malformedClose: 11
            case .invalidCloseCode: 12
            case .invalidCompressedData: 13
            case .unexpectedText: 14
            }
        }
        // ``unmaskedFrame()``, `DeflateTests.garbage()` and `WebSocketStreamTests.text()` test these three.
        let elsewhere: Set = [3, 13, 14]
        #expect(Set(Self.rows.map { label($0.violation) }).union(elsewhere) == Set(0..<15))
    }
}
