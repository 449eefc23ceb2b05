import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// Decodes all frames of the text.
func decodeAll(
    _ text: String,
    _ version: STOMPVersion? = .v1_2,
    _ role: STOMPRole = .client,
    limits: STOMPLimits = STOMPLimits()
) throws -> [PlainFrame] {
    let decode = plainDecoder(version, role, limits: limits)
    var buffer = ReceiveBuffer(capacity: 16)
    buffer.append(Array(text.utf8))
    var frames: [PlainFrame] = []
    while let frame = try decode(&buffer) { frames.append(frame) }
    return frames
}

func encode(
    _ command: STOMPCommand,
    _ headers: STOMPHeaders,
    _ body: String = "",
    _ version: STOMPVersion? = .v1_2
) throws(STOMPEncodingError) -> String {
    var writer = ByteWriter(capacity: 1)
    try STOMPFrameEncoder.encode(
        command,
        headers,
        body: Array(body.utf8),
        version: version,
        into: &writer
    )
    return String(decoding: writer.bytes, as: UTF8.self)
}

@Suite("STOMP codec: golden frames") struct STOMPCodecTests {
    @Test(
        "Decoding gives the frame of the table, however the bytes arrive",
        arguments: GoldenFrames.rows
    )
    func decode(row: GoldenFrames.Row) {
        let verifier = DecoderVerifier { plainDecoder(row.version, row.role) }
        // A CONNECTED frame changes the decoder's version, so only the first one is decoded by the rules of its row.
        guard row.frame.command != .connected else {
            let once = verifier.verify([(row.bytes, row.frame)])
            return #expect(once.allSatisfy { $0.hasPrefix("coalesced") })
        }
        #expect(verifier.verify([(row.bytes, row.frame)]) == [])
    }

    @Test(
        "Encoding gives the bytes of the table",
        arguments: GoldenFrames.rows.filter(\.isOurs)
    )
    func encoded(row: GoldenFrames.Row) throws {
        var writer = ByteWriter(capacity: 1)
        try STOMPFrameEncoder.encode(
            row.frame.command,
            row.frame.headers,
            body: row.frame.body,
            version: row.version,
            into: &writer
        )
        #expect(Hex.text(writer.bytes) == Hex.text(row.bytes))
    }

    @Test("All frames of a version and role decode from one stream", arguments: GoldenFrames.all)
    func coalesced(version: STOMPVersion?) {
        for role in [STOMPRole.client, .server] {
            let rows = GoldenFrames.rows.filter { $0.version == version && $0.role == role }
            let verifier = DecoderVerifier { plainDecoder(version, role) }
            #expect(verifier.verify(rows.map { ($0.bytes, $0.frame) }) == [])
        }
    }

    @Test("Every command is in the table")
    func complete() {
        let commands = Set(GoldenFrames.rows.map(\.frame.command))
        #expect(commands == Set(STOMPCommand.allCases))
    }

    @Test("The first of repeated headers counts, also for those that route")
    func firstCounts() throws {
        let text = "MESSAGE\ndestination:/a\ndestination:/b\nx:1\nx:2\nack:y\nack:z\n\n\0"
        var decoder = STOMPFrameDecoder(role: .client, version: .v1_2)
        var buffer = ReceiveBuffer()
        buffer.append(Array(text.utf8))
        let frame = try #require(try decoder.next(&buffer))
        #expect(frame.headers.destination == "/a")
        #expect(frame.headers.ack == "y")
        #expect(frame.headers.first("x") == "1")
        #expect(frame.headers.first("destination") == "/a")
        #expect(frame.headers.list.all("x") == ["1", "2"])
        #expect(frame.headers.list.first("x") == "1")
        #expect(frame.headers.first("y") == nil)
        #expect(frame.headers.first("X") == nil)
        #expect(frame.headers.messageID == nil)
        #expect(frame.headers.subscription == nil)
        #expect(frame.headers.receiptID == nil)
    }

    @Test("Headers are found by their text, escapes or not")
    func lookUp() throws {
        let text = "MESSAGE\r\na\\cb:1\r\nmessage-id:x\\\\y\r\nempty:\r\n\r\nbody\0"
        var decoder = STOMPFrameDecoder(role: .client, version: .v1_2)
        var buffer = ReceiveBuffer()
        buffer.append(Array(text.utf8))
        let frame = try #require(try decoder.next(&buffer))
        #expect(frame.headers.first("a:b") == "1")
        #expect(frame.headers.first("a\\cb") == nil)
        #expect(frame.headers.messageID == "x\\y")
        #expect(frame.headers.first("empty") == "")
    }

    @Test("CONNECTED without a version is of 1.0, with its one blank before a value")
    func version1_0() throws {
        var decoder = STOMPFrameDecoder(role: .client)
        var buffer = ReceiveBuffer()
        buffer.append(Array("CONNECTED\nsession: 1\ncontent-length: 0\n\n\0".utf8))
        let frame = try #require(try decoder.next(&buffer))
        #expect(decoder.version == .v1_0)
        #expect(frame.headers.first("session") == "1")
        #expect(frame.headers.list == ["session": "1", "content-length": "0"])
    }

    @Test("Line ends between frames are counted and mean nothing else")
    func lineEnds() throws {
        var decoder = STOMPFrameDecoder(role: .client, version: .v1_1)
        var buffer = ReceiveBuffer()
        let text = "\n\n\r\n\nRECEIPT\nreceipt-id:1\n\n\0\n\n\n"
        var found: [PlainFrame] = []
        for byte in text.utf8 {
            buffer.append([byte])
            while let frame = try decoder.next(&buffer) { found.append(PlainFrame(frame)) }
        }
        #expect(found == [PlainFrame(.receipt, ["receipt-id": "1"])])
        #expect(decoder.heartBeatCount == 7)
        #expect(decoder.heartBeatByteCount == 8)
        #expect(buffer.count == 0)
    }

    @Test("Several frames come out of one read")
    func several() throws {
        let text = "RECEIPT\nreceipt-id:1\n\n\0RECEIPT\nreceipt-id:2\n\n\0"
        let ids = try decodeAll(text).map { $0.headers.first("receipt-id") }
        #expect(ids == ["1", "2"])
    }

    @Test("The body of a frame shares the memory that was read into")
    func bodyIsNotCopied() throws {
        var decoder = STOMPFrameDecoder(role: .client, version: .v1_2)
        var buffer = ReceiveBuffer(capacity: 256)
        let text = "MESSAGE\nx:1\n\nhello\0"
        buffer.append(Array(text.utf8))
        let start = buffer.withUnsafeBytes { $0.baseAddress }
        let frame = try #require(try decoder.next(&buffer))
        let body = frame.body.withUnsafeBytes { $0.baseAddress }
        #expect(body == start.map { $0 + 13 })
    }

    @Test("Frames compare by what they say and print without secrets or body")
    func values() throws {
        func frame(_ text: String) throws -> STOMPFrame {
            var decoder = STOMPFrameDecoder(role: .server, version: .v1_2)
            var buffer = ReceiveBuffer()
            buffer.append(Array(text.utf8))
            return try #require(try decoder.next(&buffer))
        }
        let one = try frame("SEND\ndestination:/a\\nb\ntoken:secret\n\nbody\0")
        let other = try frame("SEND\r\ndestination:/a\\nb\r\ntoken:secret\r\n\r\nbody\0")
        #expect(one == other)
        #expect(one != (try frame("SEND\ndestination:/a\n\nbody\0")))
        #expect(one.description == "SEND destination=/a\\u{a}b (4 bytes)")
    }

    @Test("Versions have their texts and the names that WebSocket offers")
    func versions() {
        #expect(STOMPVersion.allCases.map(\.text) == ["1.0", "1.1", "1.2"])
        #expect(
            STOMPVersion.allCases.map(\.subprotocol) == ["v10.stomp", "v11.stomp", "v12.stomp"]
        )
        #expect(STOMPVersion(text: "1.1") == .v1_1)
        #expect(STOMPVersion(text: "2.0") == nil)
        #expect(STOMPVersion(subprotocol: "v12.stomp") == .v1_2)
        #expect(STOMPVersion(subprotocol: "mqtt") == nil)
    }
}

@Suite("STOMP codec: limits") struct STOMPLimitTests {
    private var limits: STOMPLimits {
        var limits = STOMPLimits()
        limits.maximumLineByteCount = 10
        limits.maximumHeaderCount = 2
        limits.maximumBodyByteCount = 5
        return limits
    }

    private func refusal(_ text: String) -> STOMPViolation? {
        do {
            _ = try decodeAll(text, limits: limits)
            return nil
        } catch {
            return error as? STOMPViolation
        }
    }

    @Test("Each limit holds, and one more is too much, as soon as it can be known")
    func bounds() {
        #expect(refusal("MESSAGE\na:34567890\n\n\0") == nil)
        #expect(refusal("MESSAGE\r\na:34567890\r\n\r\n\0") == nil)
        #expect(refusal("MESSAGE\na:345678901\n") == .lineTooLong(maximum: 10))
        #expect(refusal("MESSAGE\na:3456789012") == .lineTooLong(maximum: 10))
        #expect(refusal("MESSAGE\na:1\nb:2\n\n\0") == nil)
        #expect(refusal("MESSAGE\na:1\nb:2\nc:") == .tooManyHeaders(maximum: 2))
        #expect(refusal("MESSAGE\n\n12345\0") == nil)
        #expect(refusal("MESSAGE\n\n123456") == .bodyTooLarge(maximum: 5))
    }

    @Test("A content-length above the limit is refused before any byte of the body")
    func counted() {
        for digits in ["6", "1048577", "99999999999999999999", "18446744073709551617"] {
            #expect(throws: STOMPViolation.bodyTooLarge(maximum: 5)) {
                var limits = STOMPLimits()
                limits.maximumBodyByteCount = 5
                _ = try decodeAll("MESSAGE\ncontent-length:\(digits)\n", limits: limits)
            }
        }
    }

    @Test("Limits as high as numbers go hold nothing up")
    func highest() throws {
        var limits = STOMPLimits()
        limits.maximumLineByteCount = .max
        limits.maximumHeaderCount = .max
        limits.maximumBodyByteCount = .max
        var decoder = STOMPFrameDecoder(role: .client, version: .v1_2, limits: limits)
        var buffer = ReceiveBuffer()
        for byte in "MESSAGE\na:1\ncontent-length:1\n\nx".utf8 {
            buffer.append([byte])
            #expect(try decoder.next(&buffer) == nil)
        }
        buffer.append([0])
        #expect(try decoder.next(&buffer)?.body.count == 1)
    }

    @Test("An endless line, an endless list and an endless body end at their limits")
    func endless() {
        let limits = STOMPLimits()
        let piece = [UInt8](repeating: UInt8(ascii: "x"), count: 1_000)
        for (start, most) in [("MESSAGE\na:", 70_000), ("MESSAGE\n\n", 1_100_000), ("", 20)] {
            var decoder = STOMPFrameDecoder(role: .client, version: .v1_2, limits: limits)
            var buffer = ReceiveBuffer()
            buffer.append(Array(start.utf8))
            var refusal: STOMPViolation?
            while refusal == nil, buffer.count <= most + piece.count {
                do { _ = try decoder.next(&buffer) } catch { refusal = error }
                buffer.append(piece)
            }
            #expect(refusal != nil)
            #expect(buffer.count <= most + 2 * piece.count)
        }
    }

    @Test("A long frame that comes byte by byte is looked at once")
    func linear() throws {
        var decoder = STOMPFrameDecoder(role: .client, version: .v1_2)
        var buffer = ReceiveBuffer()
        let text = "MESSAGE\nx:" + String(repeating: "y", count: 60_000) + "\n\n"
        // A decoder that scanned from the front at every byte would take minutes here.
        for byte in text.utf8 {
            buffer.append([byte])
            if try decoder.next(&buffer) != nil { Issue.record("too early") }
        }
        for _ in 0..<200_000 {
            buffer.append([1])
            if try decoder.next(&buffer) != nil { Issue.record("too early") }
        }
        buffer.append([0])
        #expect(try decoder.next(&buffer)?.body.count == 200_000)
    }
}
