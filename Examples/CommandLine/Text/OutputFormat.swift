/// A received message, as the command shows it.
package struct ShownMessage: Sendable {
    package var topic = ""
    package var body: [UInt8] = []
    package var qos = 0
    package var isRetained = false
    package var isDuplicate = false
    /// The identifier of the protocol: of an MQTT packet, a STOMP message or an event; nil without one.
    package var identifier: String?
    package var contentType: String?
    package var replyTopic: String?
    package var correlationData: [UInt8]?
    /// The rest of the expiry interval, in seconds (MQTT 5, 3.3.2.3.3).
    package var expiry: Int?
    /// User properties or headers, in the order of the message.
    package var headers: [(name: String, value: String)] = []
    /// The time of arrival.
    package var time = WallTime(seconds: 0, nanoseconds: 0)

    package init() {}
}

/// A format of `--format`, in the manner of `mosquitto_sub -F`.
///
/// | field | value |
/// |---|---|
/// | `%t` | topic |
/// | `%p` | payload as it is |
/// | `%x`, `%X` | payload in hexadecimal digits, in lower or upper case |
/// | `%l` | length of the payload, in bytes |
/// | `%q` | quality of service |
/// | `%r` | 1 if the message was retained, else 0 |
/// | `%d` | 1 if the message is a duplicate, else 0 |
/// | `%m` | identifier of the message |
/// | `%C` | content type |
/// | `%R` | response topic |
/// | `%D` | correlation data |
/// | `%E` | rest of the expiry interval, in seconds |
/// | `%P` | user properties or headers, as `name:value` with spaces between |
/// | `%I` | time of arrival by the clock of this computer, in ISO 8601 |
/// | `%U` | time of arrival in seconds since 1970, with nanoseconds |
/// | `%j` | the message as a JSON object; the payload is a string |
/// | `%J` | the message as a JSON object; the payload is JSON |
/// | `%%` | a percent sign |
///
/// `\n`, `\t`, `\r`, `\0`, `\a`, `\e` and `\\` stand for their characters. A line feed follows each message, as in `mosquitto_sub`.
package struct OutputFormat: Sendable {
    private enum Piece: Sendable, Equatable {
        case text([UInt8])
        case field(UInt8)
    }

    private static let fields = Array("tpxXlqrdmCRDEPIUjJ".utf8)
    private let pieces: [Piece]
    /// Whether output goes to a terminal, so that `%p` and `%D` are escaped, too.
    package var isForTerminal = false

    /// The payload alone.
    package static let payload = OutputFormat(pieces: [.field(UInt8(ascii: "p"))])
    /// The topic, a space, and the payload, as `mosquitto_sub -v` writes them.
    package static let verbose = OutputFormat(pieces: [
        .field(UInt8(ascii: "t")), .text([0x20]), .field(UInt8(ascii: "p")),
    ])

    /// Whether a message is its payload and nothing else, which needs no ``ShownMessage``.
    package var isPayloadAlone: Bool { pieces == Self.payload.pieces && !isForTerminal }

    private init(pieces: [Piece]) {
        self.pieces = pieces
    }

    /// Reads a format.
    ///
    /// - Throws: `TextError` for a field that does not exist.
    package init(_ format: String) throws(TextError) {
        var pieces: [Piece] = []
        var text: [UInt8] = []
        var bytes = format.utf8.makeIterator()
        while let byte = bytes.next() {
            switch byte {
            case UInt8(ascii: "%"):
                guard let field = bytes.next() else {
                    throw TextError("the format ends with %: write %% for a percent sign")
                }
                if field == byte {
                    text.append(byte)
                } else if Self.fields.contains(field) {
                    if !text.isEmpty { pieces.append(.text(text)) }
                    text = []
                    pieces.append(.field(field))
                } else {
                    throw TextError(
                        "the format has no field %\(Unicode.Scalar(field)): see 'waybill help sub'"
                    )
                }
            case UInt8(ascii: "\\"):
                text.append(Self.unescaped(bytes.next() ?? byte))
            default: text.append(byte)
            }
        }
        if !text.isEmpty { pieces.append(.text(text)) }
        self.pieces = pieces
    }

    private static func unescaped(_ byte: UInt8) -> UInt8 {
        switch byte {
        case UInt8(ascii: "n"): 0x0A
        case UInt8(ascii: "t"): 0x09
        case UInt8(ascii: "r"): 0x0D
        case UInt8(ascii: "0"): 0
        case UInt8(ascii: "a"): 0x07
        case UInt8(ascii: "e"): 0x1B
        default: byte
        }
    }

    /// Appends a message in this format, without a line feed.
    ///
    /// Texts of the peer are escaped: see ``TerminalText``. A body is so for a terminal alone.
    package func append(_ message: ShownMessage, to output: inout [UInt8]) {
        for piece in pieces {
            switch piece {
            case .text(let text): output += text
            case .field(UInt8(ascii: "p")): append(body: message.body, to: &output)
            case .field(UInt8(ascii: "D")):
                append(body: message.correlationData ?? [], to: &output)
            case .field(let field): Self.append(field, of: message, to: &output)
            }
        }
    }

    private static func append(
        _ field: UInt8,
        of message: ShownMessage,
        to output: inout [UInt8]
    ) {
        switch Unicode.Scalar(field) {
        case "t": append(message.topic, to: &output)
        case "x": Hexadecimal.append(message.body, to: &output)
        case "X": Hexadecimal.append(message.body, isUpper: true, to: &output)
        case "l": output += "\(message.body.count)".utf8
        case "q": output += "\(message.qos)".utf8
        case "r": output.append(message.isRetained ? 0x31 : 0x30)
        case "d": output.append(message.isDuplicate ? 0x31 : 0x30)
        case "m": append(message.identifier, to: &output)
        case "C": append(message.contentType, to: &output)
        case "R": append(message.replyTopic, to: &output)
        case "E": output += (message.expiry.map { "\($0)" } ?? "").utf8
        case "P":
            let all = message.headers.map { "\($0.name):\($0.value)" }
            append(all.joined(separator: " "), to: &output)
        case "I": output += message.time.iso8601.utf8
        case "U": output += message.time.unix.utf8
        case "j": JSONText.append(message, payloadIsJSON: false, to: &output)
        case "J": JSONText.append(message, payloadIsJSON: true, to: &output)
        default: break
        }
    }

    private func append(body: [UInt8], to output: inout [UInt8]) {
        output += isForTerminal ? TerminalText.escaped(body: body) : body
    }

    private static func append(_ text: String?, to output: inout [UInt8]) {
        if let text { output += TerminalText.escaped(text).utf8 }
    }
}

/// Bytes as hexadecimal digits.
package enum Hexadecimal {
    /// Appends two digits for each byte.
    package static func append(
        _ bytes: [UInt8],
        isUpper: Bool = false,
        to output: inout [UInt8]
    ) {
        let digits = Array((isUpper ? "0123456789ABCDEF" : "0123456789abcdef").utf8)
        output.reserveCapacity(output.count + 2 * bytes.count)
        for byte in bytes {
            output.append(digits[Int(byte >> 4)])
            output.append(digits[Int(byte & 0x0F)])
        }
    }
}

/// Text that was given to the command and is wrong; the message says what to do.
package struct TextError: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) {
        self.description = description
    }
}
