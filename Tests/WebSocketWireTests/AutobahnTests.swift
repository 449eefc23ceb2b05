import Testing
import WebSocketWire
import WireCore
import WireTestSupport

/// The requirements of Autobahn's test suite for a client, groups 1 to 7 and 10, tested on the core.
///
/// Each conversation is fed frame by frame, all at once and byte by byte. The suite's variants of one case differ in
/// the same way.
@Suite("Autobahn's groups: frames, control frames, closing") struct AutobahnTests {
    /// The server's frames, and the events and answers that they must cause.
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let frames: [[UInt8]]
        let events: [WebSocketEvent]
        /// The client's answers, as a server reads them.
        let answers: [WebSocketReader.Input]

        init(
            _ name: String,
            _ frames: [[UInt8]],
            _ events: [WebSocketEvent],
            _ answers: [WebSocketReader.Input] = []
        ) {
            self.name = name
            self.frames = frames
            self.events = events
            self.answers = answers
        }

        /// Frames of which the last one breaks the protocol. The client ignores everything after it.
        static func fails(
            _ name: String,
            _ frames: [[UInt8]],
            after events: [WebSocketEvent] = [],
            _ violation: WebSocketViolation,
            answers: [WebSocketReader.Input] = []
        ) -> Row {
            Row(
                name,
                frames + [Frame.server(.ping, [0x21])],
                events + [.closed(.violation(violation))],
                answers + [.close(violation.closeCode, reason: "")]
            )
        }

        var testDescription: String { name }
    }

    static func check(_ row: Row) throws {
        let all = row.frames.flatMap { $0 }
        for pieces in [row.frames, [all], all.map { [$0] }] {
            var client = try SocketHarness.open()
            for piece in pieces { client.receive(piece) }
            #expect(client.events() == row.events, "\(row.name)")
            #expect(answers(client.sent()) == row.answers, "\(row.name)")
        }
    }

    /// Reads a client's bytes as a server does.
    static func answers(_ bytes: [UInt8]) -> [WebSocketReader.Input] {
        var reader = WebSocketReader(role: .server, maximumMessageSize: 1 << 20)
        var buffer = ReceiveBuffer()
        buffer.append(bytes)
        var inputs: [WebSocketReader.Input] = []
        while let input = try? reader.next(&buffer) { inputs.append(input) }
        return inputs
    }

    private static func pong(_ bytes: [UInt8]) -> WebSocketReader.Input {
        .pong(ByteSlice(copying: bytes))
    }

    private static func fragment(_ text: String, isFinal: Bool = false) -> [UInt8] {
        Frame.server(.continuation, Array(text.utf8), isFinal: isFinal)
    }

    // MARK: 1. Messages

    @Test("1: messages of every length class come and go, text and binary")
    func messages() throws {
        var client = try SocketHarness.open()
        var server = SocketHarness.server()
        for size in [0, 1, 125, 126, 127, 128, 65_535, 65_536] {
            let bytes = [UInt8](repeating: 0x2A, count: size)
            for kind in [WebSocketOpcode.text, .binary] {
                let frame = Frame.server(kind, bytes)
                for start in stride(from: 0, to: frame.count, by: 997) {
                    client.receive(Array(frame[start..<min(start + 997, frame.count)]))
                }
                guard case .message(let message)? = client.events().first else {
                    Issue.record("no message of \(size)")
                    return
                }
                #expect(message.payload.bytes == bytes)
                try client.core.send(message.kind, message.payload)
                server.receive(client.sent())
                #expect(server.events() == [.message(message)])
            }
        }
    }

    // MARK: 2. Pings and pongs

    static let pingRows: [Row] = {
        let binary: [UInt8] = [0x00, 0xFF, 0xFE, 0xFD, 0xFC, 0xFB, 0x00, 0xFF]
        let longest = [UInt8](repeating: 0xFE, count: 125)
        let ten = (0..<10).map { [UInt8($0)] }
        return [
            Row("no payload", [Frame.server(.ping, [])], [.ping(.empty)], [pong([])]),
            Row(
                "text",
                [Frame.server(.ping, Array("hi".utf8))],
                [.ping("hi")],
                [pong([104, 105])]
            ),
            Row(
                "bytes that are no text",
                [Frame.server(.ping, binary)],
                [.ping(ByteSlice(copying: binary))],
                [pong(binary)]
            ),
            Row(
                "125 bytes",
                [Frame.server(.ping, longest)],
                [.ping(ByteSlice(copying: longest))],
                [pong(longest)]
            ),
            .fails("126 bytes", [Frame.server(.ping, longest + [0xFE])], .controlFrameTooLong),
            Row("a pong without a ping", [Frame.server(.pong, [])], [.pong(.empty)]),
            Row(
                "one with a payload, then a ping",
                [Frame.server(.pong, [0x75]), Frame.server(.ping, [0x70])],
                [.pong("u"), .ping("p")],
                [pong([0x70])]
            ),
            Row(
                "ten",
                ten.map { Frame.server(.ping, $0) },
                ten.map { .ping(ByteSlice(copying: $0)) },
                ten.map { pong($0) }
            ),
        ]
    }()

    @Test("2: pings are answered with their payload, pongs are only noted", arguments: pingRows)
    func pings(_ row: Row) throws { try Self.check(row) }

    // MARK: 3 and 4. Reserved bits and opcodes

    @Test("3: each reserved bit fails the connection, on every kind of frame", arguments: 1...7)
    func reservedBits(_ bits: UInt8) throws {
        for opcode: UInt8 in [0x1, 0x2, 0x8, 0x9, 0xA] {
            let bad = [0x80 | bits << 4 | opcode, 0x02, 0x03, 0xE8]
            try Self.check(
                .fails("\(bits)", [Frame.text("ok"), bad], after: [.text("ok")], .reservedBits)
            )
        }
    }

    @Test(
        "4: each reserved opcode fails the connection, with and without a payload",
        arguments: [3, 4, 5, 6, 7, 11, 12, 13, 14, 15]
    )
    func reservedOpcodes(_ opcode: UInt8) throws {
        for bad in [[0x80 | opcode, 0x00], [0x80 | opcode, 0x01, 0x61]] {
            try Self.check(
                .fails(
                    "\(opcode)",
                    [Frame.text("ok"), bad],
                    after: [.text("ok")],
                    .reservedOpcode(opcode)
                )
            )
        }
    }

    // MARK: 5. Fragmentation

    static let fragmentRows: [Row] = [
        .fails(
            "a ping in two",
            [Hex("09 01 61").bytes, Hex("80 01 62").bytes],
            .fragmentedControlFrame
        ),
        .fails(
            "a pong in two",
            [Hex("0A 01 61").bytes, Hex("80 01 62").bytes],
            .fragmentedControlFrame
        ),
        Row(
            "text in two",
            [Frame.text("a", isFinal: false), fragment("b", isFinal: true)],
            [.text("ab")]
        ),
        Row(
            "text in two, a ping between",
            [
                Frame.text("a", isFinal: false), Frame.server(.ping, [0x70]),
                fragment("b", isFinal: true),
            ],
            [.ping("p"), .text("ab")],
            [pong([0x70])]
        ),
        Row(
            "text in five, a ping after each",
            [
                Frame.text("a", isFinal: false), Frame.server(.ping, [1]), fragment("b"),
                Frame.server(.ping, [2]), fragment("c"), Frame.server(.ping, [3]), fragment("d"),
                Frame.server(.ping, [4]), fragment("e", isFinal: true),
            ],
            [1, 2, 3, 4].map { .ping(ByteSlice(copying: [$0])) } + [.text("abcde")],
            [1, 2, 3, 4].map { pong([$0]) }
        ),
        .fails(
            "a last continuation of nothing",
            [fragment("x", isFinal: true)],
            .unexpectedContinuation
        ),
        .fails("a first continuation of nothing", [fragment("x")], .unexpectedContinuation),
        .fails(
            "a continuation after a message in two",
            [
                Frame.text("a", isFinal: false), fragment("b", isFinal: true), fragment("c"),
            ],
            after: [.text("ab")],
            .unexpectedContinuation
        ),
        .fails(
            "a text before the one under way is complete",
            [Frame.text("a", isFinal: false), Frame.text("b")],
            .messageInterrupted
        ),
        .fails(
            "a text after empty fragments",
            [Frame.text("", isFinal: false), fragment(""), Frame.text("b")],
            .messageInterrupted
        ),
        Row(
            "a Close between fragments",
            [Frame.text("a", isFinal: false), Frame.close(1_000), fragment("b", isFinal: true)],
            [.closed(.closed(.normalClosure, reason: "", isByPeer: true))],
            [.close(.normalClosure, reason: "")]
        ),
    ]

    @Test("5: fragments are joined, control frames among them served", arguments: fragmentRows)
    func fragments(_ row: Row) throws { try Self.check(row) }

    // MARK: 7. Closing

    static let closingRows: [Row] = {
        func closed(_ code: WebSocketCloseCode, _ reason: String = "") -> [WebSocketEvent] {
            [.closed(.closed(code, reason: reason, isByPeer: true))]
        }
        let longest = String(repeating: "*", count: 123)
        return [
            Row(
                "a message, then Close",
                [Frame.text("hi"), Frame.close(1_000)],
                [.text("hi")] + closed(.normalClosure),
                [.close(.normalClosure, reason: "")]
            ),
            Row(
                "two Closes",
                [Frame.close(1_000), Frame.close(1_001)],
                closed(.normalClosure),
                [.close(.normalClosure, reason: "")]
            ),
            Row(
                "a ping after Close",
                [Frame.close(1_000), Frame.server(.ping, [])],
                closed(.normalClosure),
                [.close(.normalClosure, reason: "")]
            ),
            Row(
                "text after Close",
                [Frame.close(1_000), Frame.text("late")],
                closed(.normalClosure),
                [.close(.normalClosure, reason: "")]
            ),
            Row(
                "rubbish after Close",
                [Frame.close(1_000), [0xFF, 0xFF, 0xFF]],
                closed(.normalClosure),
                [.close(.normalClosure, reason: "")]
            ),
            Row(
                "no code",
                [Frame.server(.close, [])],
                closed(.noStatusReceived),
                [.close(.noStatusReceived, reason: "")]
            ),
            .fails("one byte", [Frame.server(.close, [0x03])], .malformedClose),
            Row(
                "a reason",
                [Frame.close(1_000, "bye")],
                closed(.normalClosure, "bye"),
                [.close(.normalClosure, reason: "")]
            ),
            Row(
                "the longest reason",
                [Frame.close(1_000, longest)],
                closed(.normalClosure, longest),
                [.close(.normalClosure, reason: "")]
            ),
            .fails("a longer one", [Frame.close(1_000, longest + "*")], .controlFrameTooLong),
            .fails(
                "a reason that is not UTF-8",
                [Frame.server(.close, Hex("03 E8 CE BA E1 BD B9 CF 83 ED A0 80").bytes)],
                .invalidText
            ),
        ]
    }()

    @Test("7: Close is answered once, and nothing is heard behind it", arguments: closingRows)
    func closings(_ row: Row) throws { try Self.check(row) }

    @Test("7: every code is either answered or refused")
    func closeCodes() throws {
        let template = try SocketHarness.open()
        for code in (0...5_100).map(UInt16.init) + [65_534, 65_535] {
            var client = template
            client.receive(Frame.close(code))
            let isValid: Bool =
                switch code {
                case 1_000...1_003, 1_007...1_014, 3_000...4_999: true
                default: false
                }
            let closeCode = WebSocketCloseCode(rawValue: code)
            let expected: WebSocketEnding =
                isValid
                ? .closed(closeCode, reason: "", isByPeer: true)
                : .violation(.invalidCloseCode(code))
            #expect(client.events() == [.closed(expected)])
            let answer: WebSocketCloseCode = isValid ? closeCode : .protocolError
            #expect(Self.answers(client.sent()) == [.close(answer, reason: "")])
        }
    }

    @Test("7: nothing is sent after one's own Close, whatever comes")
    func silentAfterClose() throws {
        var client = try SocketHarness.open()
        try client.core.close(at: client.now)
        _ = client.sent()
        client.receive(Frame.server(.ping, [1]) + Frame.text("a") + [0xFF])
        #expect(client.sent() == [])
        #expect(throws: WebSocketSendError.notOpen) { try client.core.ping() }
        #expect(throws: WebSocketSendError.notOpen) {
            try client.core.sendFragment(.text, [] as [UInt8], isFinal: true)
        }
        try client.core.close(.goingAway, at: client.now)
        #expect(client.sent() == [])
    }

    // MARK: 10. Fragments made by the peer's own hand

    @Test("10: a message cut into equal fragments arrives whole")
    func equalFragments() throws {
        let bytes = [UInt8](repeating: 0x2A, count: 65_536)
        for size in [1, 1_300, 65_535, 65_536] {
            var client = try SocketHarness.open()
            for start in stride(from: 0, to: bytes.count, by: size) {
                let end = min(start + size, bytes.count)
                client.receive(
                    Frame.server(
                        start == 0 ? .text : .continuation,
                        Array(bytes[start..<end]),
                        isFinal: end == bytes.count
                    )
                )
            }
            #expect(client.events() == [.text(String(decoding: bytes, as: UTF8.self))])
        }
    }
}
