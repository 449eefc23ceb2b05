import STOMPWire
import Testing
import WireCore
import WireTestSupport

@Suite("STOMP codec: encoding") struct STOMPEncoderTests {
    @Test("content-length comes first with any body, counts octets, and never comes without one")
    func contentLength() throws {
        let headers: STOMPHeaders = ["destination": "/q", "x": "1"]
        for version in STOMPVersion.allCases {
            #expect(
                try encode(.send, headers, "a\0ü", version)
                    == "SEND\ncontent-length:4\ndestination:/q\nx:1\n\na\0ü\0"
            )
            #expect(try encode(.send, headers, "", version) == "SEND\ndestination:/q\nx:1\n\n\0")
        }
    }

    @Test("User headers pass unchanged and in order, repeated ones too")
    func order() throws {
        let headers: STOMPHeaders = ["b": "2", "a": " 1 ", "b": "3", "content-type": "text/x;q=1"]
        #expect(
            try encode(.send, headers, "", .v1_2)
                == "SEND\nb:2\na: 1 \nb:3\ncontent-type:text/x;q=1\n\n\0"
        )
    }

    @Test("1.2 escapes CR, LF, colon and backslash in names and values")
    func escapes1_2() throws {
        #expect(
            try encode(.send, ["x\r\n:\\": "a\r\n:\\b"], "", .v1_2)
                == "SEND\nx\\r\\n\\c\\\\:a\\r\\n\\c\\\\b\n\n\0"
        )
    }

    @Test("1.1 escapes LF, colon and backslash, and refuses CR")
    func escapes1_1() throws {
        #expect(
            try encode(.send, ["x\n:\\": "a\n:\\b"], "", .v1_1)
                == "SEND\nx\\n\\c\\\\:a\\n\\c\\\\b\n\n\0"
        )
        #expect(throws: STOMPEncodingError.lineBreakNotAllowed("x")) {
            try encode(.send, ["x": "a\r"], "", .v1_1)
        }
        #expect(throws: STOMPEncodingError.lineBreakNotAllowed("x\r")) {
            try encode(.send, ["x\r": "a"], "", .v1_1)
        }
    }

    @Test("1.0 has no escapes: backslashes go out raw, line breaks and colons in names are refused")
    func escapes1_0() throws {
        #expect(try encode(.send, ["x": "a\\b:c"], "", .v1_0) == "SEND\nx:a\\b:c\n\n\0")
        for breaking in ["a\nb", "a\r"] {
            #expect(throws: STOMPEncodingError.lineBreakNotAllowed("x")) {
                try encode(.send, ["x": breaking], "", .v1_0)
            }
        }
        #expect(throws: STOMPEncodingError.colonNotAllowed("x:y")) {
            try encode(.send, ["x:y": "1"], "", .v1_0)
        }
    }

    @Test("CONNECT and CONNECTED go out raw in every version, and refuse what that cannot carry")
    func handshake() throws {
        for version in GoldenFrames.all + [nil] {
            for command in [STOMPCommand.connect, .stomp, .connected] {
                #expect(
                    try encode(command, ["passcode": "a\\b:c"], "", version)
                        == "\(command)\npasscode:a\\b:c\n\n\0"
                )
                for breaking in ["a\nb", "a\rb"] {
                    #expect(throws: STOMPEncodingError.lineBreakNotAllowed("passcode")) {
                        try encode(command, ["passcode": breaking], "", version)
                    }
                }
                #expect(throws: STOMPEncodingError.colonNotAllowed("a:b")) {
                    try encode(command, ["a:b": ""], "", version)
                }
            }
        }
    }

    @Test(
        "What no version can carry is refused, and nothing is written",
        arguments: STOMPVersion.allCases
    )
    func refused(version: STOMPVersion) throws {
        var writer = ByteWriter()
        writer.append(UInt8(ascii: "\n"))
        let rows: [(STOMPCommand, STOMPHeaders, String, STOMPEncodingError)] = [
            (.send, ["a": "1", "": "x"], "", .headerNameEmpty),
            (.send, ["a": "1\0"], "", .nullCharacter("a")),
            (.send, ["a\0": "1"], "b", .nullCharacter("a\0")),
            (.send, ["content-length": "1"], "b", .contentLengthNotAllowed),
            (.subscribe, ["id": "1"], "b", .bodyNotAllowed(.subscribe)),
            (.receipt, ["receipt-id": "1"], "b", .bodyNotAllowed(.receipt)),
        ]
        for (command, headers, body, expected) in rows {
            #expect(throws: expected) {
                try STOMPFrameEncoder.encode(
                    command,
                    headers,
                    body: Array(body.utf8),
                    version: version,
                    into: &writer
                )
            }
            #expect(writer.bytes == [UInt8(ascii: "\n")])
        }
    }

    @Test("Only SEND carries a body from a client, only MESSAGE and ERROR from a server")
    func bodies() {
        for command in STOMPCommand.allCases {
            let isAllowed = command == .send || command == .message || command == .error
            let text = try? encode(command, [:], "b", .v1_2)
            #expect((text != nil) == isAllowed, "\(command)")
        }
    }

    @Test("1.0 has no NACK")
    func nack() {
        #expect(throws: STOMPEncodingError.commandNotAllowed(.nack)) {
            try encode(.nack, ["message-id": "1"], "", .v1_0)
        }
    }

    @Test("What was encoded is decoded again, in every version")
    func roundTrip() throws {
        let headers: STOMPHeaders = ["destination": "/q", "ä": "€ \\n", "x": "", "x": "2"]
        for version in STOMPVersion.allCases {
            let text = try encode(.send, headers, "a\0\n", version)
            let frame = try #require(try decodeAll(text, version, .server).first)
            #expect(frame.headers.fields.dropFirst() == headers.fields[...])
            #expect(frame.headers.first("content-length") == "3")
            #expect(frame.body == Array("a\0\n".utf8))
        }
    }

    // MARK: Units

    @Test("Bytes of the encoder are cut into frames and heart-beats, complete ones only")
    func units() throws {
        let units = [
            try encode(.send, ["destination": "/q", "x": "a\nb"], "\n\n\0a"),
            "\n",
            try encode(.subscribe, ["id": "1", "destination": "/q"]),
            try encode(.connect, ["host": ""], "", nil),
            try encode(.ack, [:]),
            "\n",
            "\n",
            try encode(.send, ["destination": "/q"], String(repeating: "\0", count: 1_000)),
        ].map { Array($0.utf8) }
        var rest = units.flatMap { $0 }[...]
        for unit in units {
            let length = rest.withUnsafeBytes { STOMPFrameEnd.unitLength($0) }
            #expect(length == unit.count)
            rest = rest.dropFirst(length)
        }
        #expect(rest.isEmpty)
        for unit in units {
            for count in 0..<unit.count {
                #expect(unit[..<count].withUnsafeBytes { STOMPFrameEnd.unitLength($0) } == 0)
            }
        }
    }

    @Test("Bytes that are not the encoder's give a length within them, whatever they are")
    func unitsOfOthers() {
        let texts = [
            "", "x", "\0", "SEND\ncontent-length:99999999999999999999\n\nx\0",
            "SEND\ncontent-length:9223372036854775807\n\nx\0", "SEND\ncontent-length:x\n\n\0",
            "SEND\ncontent-length:-5\n\n\0", "SEND\ncontent-length:", "SEND\ncontent-length:1",
        ]
        for text in texts {
            let bytes = Array(text.utf8)
            let length = bytes.withUnsafeBytes { STOMPFrameEnd.unitLength($0) }
            #expect(length >= 0 && length <= bytes.count, "\(text)")
        }
    }
}
