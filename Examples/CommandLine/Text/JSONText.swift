/// JSON in and out, by its tokens (RFC 8259): numbers and the order of members stay as they are.
package enum JSONText {
    /// The JSON with one member on a line, indented by two spaces; nil if the bytes are no JSON.
    package static func pretty(_ bytes: [UInt8]) -> [UInt8]? { Reader.read(bytes, isPretty: true) }

    /// The JSON without spaces between its tokens; nil if the bytes are no JSON.
    package static func compact(_ bytes: [UInt8]) -> [UInt8]? {
        Reader.read(bytes, isPretty: false)
    }

    /// Appends text as a JSON string; bytes that are not UTF-8 become U+FFFD.
    package static func append(_ text: [UInt8], to output: inout [UInt8]) {
        append(String(decoding: text, as: UTF8.self), to: &output)
    }

    /// Appends text as a JSON string.
    package static func append(_ text: String, to output: inout [UInt8]) {
        output.append(UInt8(ascii: "\""))
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "\""), UInt8(ascii: "\\"):
                output.append(UInt8(ascii: "\\"))
                output.append(byte)
            case 0x0A: output += #"\n"#.utf8
            case 0x0D: output += #"\r"#.utf8
            case 0x09: output += #"\t"#.utf8
            case 0..<0x20, 0x7F:
                output += #"\u00"#.utf8
                Hexadecimal.append([byte], to: &output)
            default: output.append(byte)
            }
        }
        output.append(UInt8(ascii: "\""))
    }

    /// Appends a message as an object, with the names of `mosquitto_sub -F %j`.
    static func append(_ message: ShownMessage, payloadIsJSON: Bool, to output: inout [UInt8]) {
        output += #"{"tst":"#.utf8
        append(message.time.iso8601, to: &output)
        output += #","topic":"#.utf8
        append(message.topic, to: &output)
        output += #","qos":\#(message.qos),"retain":\#(message.isRetained ? 1 : 0)"#.utf8
        output += #","payloadlen":\#(message.body.count)"#.utf8
        if let identifier = message.identifier {
            output += #","mid":"#.utf8
            append(identifier, to: &output)
        }
        if !message.headers.isEmpty {
            output += #","properties":["#.utf8
            for (index, header) in message.headers.enumerated() {
                output += (index == 0 ? "[" : ",[").utf8
                append(header.name, to: &output)
                output += ",".utf8
                append(header.value, to: &output)
                output += "]".utf8
            }
            output += "]".utf8
        }
        output += #","payload":"#.utf8
        if payloadIsJSON, let json = compact(message.body) {
            output += json
        } else {
            append(message.body, to: &output)
        }
        output += "}".utf8
    }
}

private struct Reader {
    private let bytes: [UInt8]
    private let isPretty: Bool
    private var position = 0
    private var output: [UInt8] = []
    private static let deepest = 256

    static func read(_ bytes: [UInt8], isPretty: Bool) -> [UInt8]? {
        var reader = Reader(bytes: bytes, isPretty: isPretty)
        reader.skipSpace()
        guard reader.value(depth: 0) else { return nil }
        reader.skipSpace()
        return reader.position == bytes.count ? reader.output : nil
    }

    private init(bytes: [UInt8], isPretty: Bool) {
        self.bytes = bytes
        self.isPretty = isPretty
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func skipSpace() {
        while let next, [0x20, 0x09, 0x0A, 0x0D].contains(next) { position += 1 }
    }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard next == byte else { return false }
        position += 1
        return true
    }

    private mutating func lineFeed(_ depth: Int) {
        guard isPretty else { return }
        output.append(0x0A)
        output += repeatElement(0x20, count: 2 * depth)
    }

    private mutating func value(depth: Int) -> Bool {
        guard depth < Self.deepest, let next else { return false }
        switch next {
        case UInt8(ascii: "{"): return members(depth, end: UInt8(ascii: "}"), areNamed: true)
        case UInt8(ascii: "["): return members(depth, end: UInt8(ascii: "]"), areNamed: false)
        case UInt8(ascii: "\""): return string()
        case UInt8(ascii: "t"): return word("true")
        case UInt8(ascii: "f"): return word("false")
        case UInt8(ascii: "n"): return word("null")
        default: return number()
        }
    }

    private mutating func members(_ depth: Int, end: UInt8, areNamed: Bool) -> Bool {
        output.append(bytes[position])
        position += 1
        skipSpace()
        if take(end) {
            output.append(end)
            return true
        }
        while true {
            lineFeed(depth + 1)
            if areNamed {
                guard string() else { return false }
                skipSpace()
                guard take(UInt8(ascii: ":")) else { return false }
                output += (isPretty ? ": " : ":").utf8
                skipSpace()
            }
            guard value(depth: depth + 1) else { return false }
            skipSpace()
            if take(end) {
                lineFeed(depth)
                output.append(end)
                return true
            }
            guard take(UInt8(ascii: ",")) else { return false }
            output.append(UInt8(ascii: ","))
            skipSpace()
        }
    }

    private mutating func string() -> Bool {
        let begin = position
        guard take(UInt8(ascii: "\"")) else { return false }
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                output += bytes[begin..<position]
                return true
            case UInt8(ascii: "\\"): position += 1
            case 0..<0x20: return false
            default: break
            }
        }
        return false
    }

    private mutating func word(_ word: String) -> Bool {
        guard bytes[position...].starts(with: word.utf8) else { return false }
        position += word.utf8.count
        output += word.utf8
        return true
    }

    private mutating func digits() -> Bool {
        let begin = position
        while let next, (0x30...0x39).contains(next) { position += 1 }
        return position > begin
    }

    private mutating func number() -> Bool {
        let begin = position
        _ = take(UInt8(ascii: "-"))
        guard take(UInt8(ascii: "0")) || digits() else { return false }
        if take(UInt8(ascii: ".")), !digits() { return false }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard digits() else { return false }
        }
        output += bytes[begin..<position]
        return true
    }
}
