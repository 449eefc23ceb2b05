import STOMPWire
import Testing
import WireCore
import WireTestSupport

/// A frame as plain values, for comparisons.
struct PlainFrame: Equatable, Sendable, CustomStringConvertible {
    var command: STOMPCommand
    var headers: STOMPHeaders
    var body: [UInt8] = []

    init(_ command: STOMPCommand, _ headers: STOMPHeaders = [:], _ body: String = "") {
        self.command = command
        self.headers = headers
        self.body = Array(body.utf8)
    }

    init(_ frame: STOMPFrame) {
        command = frame.command
        headers = frame.headers.list
        body = frame.body.bytes
    }

    var description: String {
        let fields = headers.fields.map { "\($0.name)=\($0.value)" }.joined(separator: " ")
        return "\(command) \(fields) \(String(decoding: body, as: UTF8.self))"
    }
}

/// Makes a decoder that returns plain frames.
func plainDecoder(
    _ version: STOMPVersion?,
    _ role: STOMPRole,
    limits: STOMPLimits = STOMPLimits()
) -> DecoderVerifier<PlainFrame>.Decode {
    var decoder = STOMPFrameDecoder(role: role, version: version, limits: limits)
    return { buffer in try decoder.next(&buffer).map { PlainFrame($0) } }
}

/// Frames and their bytes: first the examples of the specification, then cases that the examples leave open.
enum GoldenFrames {
    struct Row: Sendable, CustomTestStringConvertible {
        let version: STOMPVersion?
        let role: STOMPRole
        let bytes: [UInt8]
        let frame: PlainFrame
        /// True when the package's encoder writes exactly these bytes.
        let isOurs: Bool

        var testDescription: String {
            "\(version?.text ?? "-") \(frame.command): \(Hex.text(bytes.prefix(40)))"
        }
    }

    private static func row(
        _ versions: [STOMPVersion?],
        _ role: STOMPRole,
        _ text: String,
        _ frame: PlainFrame,
        isOurs: Bool = true
    ) -> [Row] {
        versions.map {
            Row(version: $0, role: role, bytes: Array(text.utf8), frame: frame, isOurs: isOurs)
        }
    }

    static let all: [STOMPVersion?] = [.v1_0, .v1_1, .v1_2]

    static let rows: [Row] = opening + fromClients + fromServers + spellings + escapes

    // MARK: Examples of the specification

    private static let opening =
        row(
            [nil],
            .server,
            "CONNECT\naccept-version:1.2\nhost:stomp.github.org\n\n\0",
            PlainFrame(.connect, ["accept-version": "1.2", "host": "stomp.github.org"])
        )
        + row(
            [nil],
            .server,
            "STOMP\naccept-version:1.0,1.1,2.0\nhost:stomp.github.org\n\n\0",
            PlainFrame(.stomp, ["accept-version": "1.0,1.1,2.0", "host": "stomp.github.org"])
        )
        + row(
            [nil],
            .client,
            "CONNECTED\nversion:1.1\n\n\0",
            PlainFrame(.connected, ["version": "1.1"])
        )
        + row(
            [nil],
            .client,
            "ERROR\nversion:1.2,2.1\ncontent-type:text/plain\n\n"
                + "Supported protocol versions are 1.2 2.1\0",
            PlainFrame(
                .error,
                ["version": "1.2,2.1", "content-type": "text/plain"],
                "Supported protocol versions are 1.2 2.1"
            ),
            isOurs: false
        )

    private static let fromClients =
        row(
            all,
            .server,
            "SEND\ndestination:/queue/a\ncontent-type:text/plain\n\nhello queue a\0",
            PlainFrame(
                .send,
                ["destination": "/queue/a", "content-type": "text/plain"],
                "hello queue a"
            ),
            isOurs: false
        )
        + row(
            all,
            .server,
            "SUBSCRIBE\nid:0\ndestination:/queue/foo\nack:client\n\n\0",
            PlainFrame(.subscribe, ["id": "0", "destination": "/queue/foo", "ack": "client"])
        )
        + row(all, .server, "UNSUBSCRIBE\nid:0\n\n\0", PlainFrame(.unsubscribe, ["id": "0"]))
        + row(
            all,
            .server,
            "ACK\nid:12345\ntransaction:tx1\n\n\0",
            PlainFrame(.ack, ["id": "12345", "transaction": "tx1"])
        )
        + row([.v1_1, .v1_2], .server, "NACK\nid:1\n\n\0", PlainFrame(.nack, ["id": "1"]))
        + row(all, .server, "BEGIN\ntransaction:t\n\n\0", PlainFrame(.begin, ["transaction": "t"]))
        + row(
            all,
            .server,
            "COMMIT\ntransaction:t\n\n\0",
            PlainFrame(.commit, ["transaction": "t"])
        )
        + row(all, .server, "ABORT\ntransaction:t\n\n\0", PlainFrame(.abort, ["transaction": "t"]))
        + row(
            all,
            .server,
            "DISCONNECT\nreceipt:77\n\n\0",
            PlainFrame(.disconnect, ["receipt": "77"])
        )

    private static let fromServers =
        row(
            all,
            .client,
            "MESSAGE\nsubscription:0\nmessage-id:007\ndestination:/queue/a\n"
                + "content-type:text/plain\n\nhello queue a\0",
            PlainFrame(
                .message,
                [
                    "subscription": "0", "message-id": "007", "destination": "/queue/a",
                    "content-type": "text/plain",
                ],
                "hello queue a"
            ),
            isOurs: false
        )
        + row(
            all,
            .client,
            "RECEIPT\nreceipt-id:message-12345\n\n\0",
            PlainFrame(.receipt, ["receipt-id": "message-12345"])
        )
        + row(
            all,
            .client,
            "ERROR\nreceipt-id:message-12345\ncontent-type:text/plain\ncontent-length:170\n"
                + "message:malformed frame received\n\n" + errorBody + "\0",
            PlainFrame(
                .error,
                [
                    "receipt-id": "message-12345", "content-type": "text/plain",
                    "content-length": "170", "message": "malformed frame received",
                ],
                errorBody
            ),
            isOurs: false
        )

    private static let errorBody =
        "The message:\n-----\nMESSAGE\ndestined:/queue/a\nreceipt:message-12345\n\n"
        + "Hello queue a!\n-----\nDid not contain a destination header, which is REQUIRED\n"
        + "for message propagation.\n"

    // MARK: What the examples leave open

    private static let spellings =
        // Repeated headers are kept. The first one counts.
        row(
            all,
            .client,
            "MESSAGE\nfoo:World\nfoo:Hello\n\n\0",
            PlainFrame(.message, ["foo": "World", "foo": "Hello"])
        )
        // An empty value, a colon in a value, and blanks that belong to the value.
        + row(all, .client, "MESSAGE\nx:\n\n\0", PlainFrame(.message, ["x": ""]))
        + row(
            all,
            .client,
            "MESSAGE\ndestination:/q:1\n\n\0",
            PlainFrame(.message, ["destination": "/q:1"]),
            isOurs: false
        )
        + row(
            [.v1_1, .v1_2],
            .client,
            "MESSAGE\nx: a \n\n\0",
            PlainFrame(.message, ["x": " a "])
        )
        + row(
            [.v1_0],
            .client,
            "MESSAGE\nx:  a \ncontent-length: 1\n\nb\0",
            PlainFrame(.message, ["x": " a ", "content-length": "1"], "b"),
            isOurs: false
        )
        + row(all, .server, "SEND\nx: a \n\n\0", PlainFrame(.send, ["x": " a "]))
        // Line ends before a frame, and CR LF inside a frame of 1.2.
        + row(
            all,
            .client,
            "\n\n\r\n\nRECEIPT\nreceipt-id:1\n\n\0",
            PlainFrame(.receipt, ["receipt-id": "1"]),
            isOurs: false
        )
        + row(
            [.v1_2],
            .client,
            "RECEIPT\r\nreceipt-id:1\r\n\r\n\0",
            PlainFrame(.receipt, ["receipt-id": "1"]),
            isOurs: false
        )
        + row(
            [.v1_2, nil],
            .client,
            "ERROR\r\nx:1\ncontent-length:2\r\n\n\r\n\0",
            PlainFrame(.error, ["x": "1", "content-length": "2"], "\r\n"),
            isOurs: false
        )
        + row(
            [.v1_0, .v1_1],
            .client,
            "RECEIPT\nreceipt-id:1\r\n\n\0",
            PlainFrame(.receipt, ["receipt-id": "1\r"]),
            isOurs: false
        )
        // Bodies: counted and with NULs inside, uncounted, counted and empty.
        + row(
            all,
            .client,
            "MESSAGE\ncontent-length:3\n\n\0a\0\0",
            PlainFrame(.message, ["content-length": "3"], "\0a\0"),
            isOurs: false
        )
        + row(all, .client, "MESSAGE\n\nab\0", PlainFrame(.message, [:], "ab"), isOurs: false)
        + row(
            all,
            .client,
            "RECEIPT\ncontent-length:0\n\n\0",
            PlainFrame(.receipt, ["content-length": "0"]),
            isOurs: false
        )
        // Of repeated content-length headers, the first one counts.
        + row(
            all,
            .client,
            "MESSAGE\ncontent-length:1\ncontent-length:9\n\n\0\0",
            PlainFrame(.message, ["content-length": "1", "content-length": "9"], "\0"),
            isOurs: false
        )

    private static let escapes =
        row(
            [.v1_1, .v1_2],
            .client,
            "MESSAGE\nx:a\\nb\na\\cb:1\n\\\\:\\\\\\\\n\n\n\0",
            PlainFrame(.message, ["x": "a\nb", "a:b": "1", "\\": "\\\\n"])
        )
        + row([.v1_2], .client, "MESSAGE\nx:a\\rb\n\n\0", PlainFrame(.message, ["x": "a\rb"]))
        + row(
            [.v1_2],
            .server,
            "SEND\nx:a\\r\\n\\c\\\\b\n\n\0",
            PlainFrame(.send, ["x": "a\r\n:\\b"])
        )
        + row([.v1_0], .client, "MESSAGE\nx:a\\tb\\\n\n\0", PlainFrame(.message, ["x": "a\\tb\\"]))
        + row(
            [nil],
            .client,
            "CONNECTED\nversion:1.2\nsession:a\\cb\\\n\n\0",
            PlainFrame(.connected, ["version": "1.2", "session": "a\\cb\\"])
        )
        + row(
            [nil],
            .server,
            "CONNECT\npasscode:a\\tb:c\n\n\0",
            PlainFrame(.connect, ["passcode": "a\\tb:c"])
        )
        + row(
            all,
            .client,
            "MESSAGE\nä€:𐍈\n\nü\0",
            PlainFrame(.message, ["ä€": "𐍈"], "ü"),
            isOurs: false
        )
}
