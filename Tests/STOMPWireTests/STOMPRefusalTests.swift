import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// Every violation of the protocol: the bytes, the role that reads them, and the error.
@Suite("STOMP: refusals") struct STOMPRefusalTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let version: STOMPVersion?
        let role: STOMPRole
        let bytes: [UInt8]
        let violation: STOMPViolation

        var testDescription: String {
            "\(version?.text ?? "-") \(violation): \(Hex.text(bytes.prefix(40)))"
        }
    }

    private static func rows(
        _ versions: [STOMPVersion?],
        _ role: STOMPRole,
        _ text: String,
        _ violation: STOMPViolation
    ) -> [Row] {
        versions.map {
            Row(version: $0, role: role, bytes: Array(text.utf8), violation: violation)
        }
    }

    private static let all = GoldenFrames.all
    private static let escaping: [STOMPVersion?] = [.v1_1, .v1_2]

    // MARK: What a decoder refuses

    static let decoderRows: [Row] = commands + lines + text + bodies

    private static let commands =
        rows(all, .client, "HELLO\n", .commandUnknown)
        + rows(all, .client, "Receipt\n", .commandUnknown)
        + rows(all, .client, "RECEIPT \n", .commandUnknown)
        + rows(all, .client, "receipt-id:", .commandUnknown)
        + rows(all, .client, "HTTP/1.1 400 ", .commandUnknown)
        + rows(all, .client, "\rR", .commandUnknown)
        + rows(all, .client, "\n\r\r", .commandUnknown)
        + rows([.v1_0, .v1_1], .client, "RECEIPT\r\n", .commandUnknown)
        + rows(all, .client, "SEND\n", .commandNotAllowed(.send))
        + rows(all, .server, "MESSAGE\n", .commandNotAllowed(.message))
        + rows([.v1_0], .server, "NACK\n", .commandNotAllowed(.nack))

    private static let lines =
        rows(all, .client, "RECEIPT\nreceipt-id\n", .headerLineInvalid)
        + rows([.v1_0, .v1_1], .client, "RECEIPT\n\r\n", .headerLineInvalid)
        + rows(all, .client, "RECEIPT\n:", .headerNameEmpty)
        + rows([.v1_2], .client, "MESSAGE\nx:a\rb", .carriageReturnInvalid)
        + rows([.v1_2], .client, "MESSAGE\nx:a\r\r", .carriageReturnInvalid)
        + rows(
            all,
            .client,
            "MESSAGE\n" + String(repeating: "x", count: 65_538),
            .lineTooLong(maximum: 65_536)
        )
        + rows(
            all,
            .client,
            "MESSAGE\n" + String(repeating: "x:\n", count: 100) + "y:",
            .tooManyHeaders(maximum: 100)
        )

    private static let text =
        rows(escaping, .client, "MESSAGE\nx:a\\t", .escapeUndefined)
        + rows(escaping, .client, "MESSAGE\nx:a\\\n", .escapeUndefined)
        + rows(escaping, .client, "MESSAGE\na\\x", .escapeUndefined)
        + rows(escaping, .client, "MESSAGE\nx:\\C", .escapeUndefined)
        + rows([.v1_1], .client, "MESSAGE\nx:a\\r", .escapeUndefined)
        + rows([.v1_2], .client, "MESSAGE\nx:a\\\r", .escapeUndefined)
        + rows(all, .client, "RECEIPT\nreceipt-id:1\0", .nullInHead)
        + rows(all, .client, "RECEIPT\n\0", .nullInHead)
        + rows(all, .client, "\0", .nullInHead)
        + all.map { version in
            Row(
                version: version,
                role: .client,
                bytes: Array("RECEIPT\nreceipt-id:".utf8) + [0xFF] + Array("\n\n".utf8),
                violation: .invalidUTF8
            )
        }
        + all.map { version in
            Row(
                version: version,
                role: .client,
                bytes: Array("RECEIPT\n".utf8) + [0xC3] + Array(":\n\n".utf8),
                violation: .invalidUTF8
            )
        }

    private static let bodies =
        rows(all, .client, "MESSAGE\ncontent-length:1\n\nab", .frameEndMissing)
        + rows(all, .client, "MESSAGE\ncontent-length:0\n\na", .frameEndMissing)
        + ["", "a", "-1", "+1", "1 ", "1,0", "0x1", "1.0"].flatMap {
            rows(all, .client, "MESSAGE\ncontent-length:\($0)\n", .contentLengthInvalid)
        }
        + rows(escaping, .client, "MESSAGE\ncontent-length: 1\n", .contentLengthInvalid)
        + rows(
            all,
            .client,
            "MESSAGE\ncontent-length:99999999999999999999\n",
            .bodyTooLarge(maximum: 1 << 20)
        )
        + rows(
            all,
            .client,
            "MESSAGE\n\n" + String(repeating: "x", count: 1 << 20 + 1),
            .bodyTooLarge(maximum: 1 << 20)
        )
        + rows(all, .client, "RECEIPT\nreceipt-id:1\n\nx", .bodyNotAllowed(.receipt))
        + rows(all, .client, "RECEIPT\ncontent-length:1\n", .bodyNotAllowed(.receipt))
        + rows(all, .client, "RECEIPT\ncontent-length:0\n\nx", .bodyNotAllowed(.receipt))
        + rows([nil], .client, "CONNECTED\n\nx", .bodyNotAllowed(.connected))
        + rows(all, .server, "SUBSCRIBE\n\nx", .bodyNotAllowed(.subscribe))
        + rows([nil], .client, "CONNECTED\nversion:1.3\n\n\0", .versionNotOffered)

    @Test(
        "A decoder refuses it as soon as it can be known, and again ever after",
        arguments: decoderRows
    )
    func decoder(row: Row) throws {
        var decoder = STOMPFrameDecoder(role: row.role, version: row.version)
        var buffer = ReceiveBuffer(capacity: 16)
        buffer.append(row.bytes.dropLast())
        let early = try decoder.next(&buffer)
        #expect(early == nil)
        buffer.append(row.bytes.suffix(1))
        for _ in 0..<2 {
            #expect(throws: row.violation) { try decoder.next(&buffer) }
            buffer.append(Array("RECEIPT\n\n\0".utf8))
        }
    }

    @Test(
        "Byte by byte it is refused just the same",
        arguments: decoderRows.filter { $0.bytes.count < 100 }
    )
    func byteByByte(row: Row) {
        var decoder = STOMPFrameDecoder(role: row.role, version: row.version)
        var buffer = ReceiveBuffer(capacity: 16)
        var refusal: STOMPViolation?
        for byte in row.bytes {
            buffer.append([byte])
            do { _ = try decoder.next(&buffer) } catch { refusal = error }
        }
        #expect(refusal == row.violation)
    }

    // MARK: What a connection refuses

    /// Input of a connected client.
    static let clientRows: [Row] =
        rows(all, .client, "CONNECTED\nversion:1.2\n\n\0", .connectedTwice)
        + rows(all, .client, "RECEIPT\n\n\0", .headerMissing(.receipt, "receipt-id"))
        + rows(
            all,
            .client,
            "MESSAGE\nmessage-id:1\nsubscription:0\n\n\0",
            .headerMissing(.message, "destination")
        )

    @Test("A client closes without a word", arguments: clientRows)
    func client(row: Row) throws {
        var harness = try ClientHarness(row.version)
        harness.receive(row.bytes)
        #expect(harness.closure == .violation(row.violation))
        #expect(harness.sent == "")
    }

    /// Input of a server, complete from the first byte of the connection.
    static let serverRows: [Row] =
        rows([nil], .server, "SEND\ndestination:/q\n\n\0", .frameBeforeConnected(.send))
        + rows([nil], .server, "CONNECT\naccept-version:2.0\nhost:h\n\n\0", .versionNotOffered)
        + rows(
            [nil],
            .server,
            "CONNECT\naccept-version:1.2\n\n\0",
            .headerMissing(.connect, "host")
        )
        + rows(
            [nil],
            .server,
            "CONNECT\naccept-version:1.2\nhost:h\nheart-beat:x\n\n\0",
            .heartBeatInvalid
        )
        + rows(all, .server, "CONNECT\nhost:h\n\n\0", .connectedTwice)
        + rows(all, .server, "SEND\n\n\0", .headerMissing(.send, "destination"))
        + rows(
            escaping,
            .server,
            "SUBSCRIBE\ndestination:/q\n\n\0",
            .headerMissing(.subscribe, "id")
        )
        + rows(
            all,
            .server,
            "SUBSCRIBE\nid:0\ndestination:/q\nack:x\n\n\0",
            .headerInvalid(.subscribe, "ack")
        )
        + rows(
            [.v1_0],
            .server,
            "SUBSCRIBE\nid:0\ndestination:/q\nack:client-individual\n\n\0",
            .headerInvalid(.subscribe, "ack")
        )
        + rows(
            all,
            .server,
            "SUBSCRIBE\nid:0\ndestination:/q\n\n\0SUBSCRIBE\nid:0\ndestination:/q\n\n\0",
            .subscriptionRepeated
        )
        + rows(all, .server, "UNSUBSCRIBE\nid:0\n\n\0", .subscriptionUnknown)
        + rows(escaping, .server, "UNSUBSCRIBE\n\n\0", .headerMissing(.unsubscribe, "id"))
        + rows([.v1_0], .server, "UNSUBSCRIBE\n\n\0", .headerMissing(.unsubscribe, "destination"))
        + rows([.v1_2], .server, "ACK\nmessage-id:1\n\n\0", .headerMissing(.ack, "id"))
        + rows([.v1_1], .server, "NACK\nmessage-id:1\n\n\0", .headerMissing(.nack, "subscription"))
        + rows(
            all,
            .server,
            "ACK\nid:1\nmessage-id:1\nsubscription:0\ntransaction:t\n\n\0",
            .transactionUnknown
        )
        + rows(all, .server, "SEND\ndestination:/q\ntransaction:t\n\n\0", .transactionUnknown)
        + rows(all, .server, "COMMIT\ntransaction:t\n\n\0", .transactionUnknown)
        + rows(all, .server, "ABORT\ntransaction:t\n\n\0", .transactionUnknown)
        + rows(
            all,
            .server,
            "BEGIN\ntransaction:t\n\n\0BEGIN\ntransaction:t\n\n\0",
            .transactionRepeated
        )
        + rows(all, .server, "BEGIN\n\n\0", .headerMissing(.begin, "transaction"))

    @Test("A server says ERROR and closes", arguments: serverRows)
    func server(row: Row) {
        var harness = ServerHarness(row.version)
        harness.receive(String(decoding: row.bytes, as: UTF8.self))
        #expect(harness.closure == .violation(row.violation))
        #expect(harness.sent.hasPrefix("ERROR\n"))
    }

    @Test("A server holds back just so many frames before it has decided about CONNECT")
    func held() {
        var harness = ServerHarness(nil)
        harness.receive("CONNECT\naccept-version:1.2\nhost:h\n\n\0")
        for _ in 0..<64 { harness.receive("SEND\ndestination:/q\n\n\0") }
        #expect(harness.closure == nil)
        harness.receive("SEND\ndestination:/q\n\n\0")
        #expect(harness.closure == .violation(.tooManyFramesHeld(maximum: 64)))
    }

    @Test("Each kind of violation has a row, and says in words what it is")
    func complete() {
        let rows = Self.decoderRows + Self.clientRows + Self.serverRows
        var kinds = Set(rows.map { Self.kind($0.violation) })
        // This case has a test of its own.
        kinds.insert(Self.kind(.tooManyFramesHeld(maximum: 64)))
        #expect(kinds == Set(0..<25))
        let messages = Set(rows.map { $0.violation.message })
        #expect(messages.allSatisfy { !$0.isEmpty && !$0.contains("\n") })
    }

    /// Gives each case a number. The switch does not compile until a new case is listed.
    private static func kind(_ violation: STOMPViolation) -> Int {
        switch violation {
        case .commandUnknown: 0
        case .headerLineInvalid: 1
        case .headerNameEmpty: 2
        case .escapeUndefined: 3
        case .invalidUTF8: 4
        case .nullInHead: 5
        case .carriageReturnInvalid: 6
        case .contentLengthInvalid: 7
        case .frameEndMissing: 8
        case .lineTooLong: 9
        case .tooManyHeaders: 10
        case .bodyTooLarge: 11
        case .tooManyFramesHeld: 12
        case .bodyNotAllowed: 13
        case .commandNotAllowed: 14
        case .headerMissing: 15
        case .headerInvalid: 16
        case .versionNotOffered: 17
        case .heartBeatInvalid: 18
        case .frameBeforeConnected: 19
        case .connectedTwice: 20
        case .subscriptionRepeated: 21
        case .subscriptionUnknown: 22
        case .transactionRepeated: 23
        case .transactionUnknown: 24
        }
    }
}
