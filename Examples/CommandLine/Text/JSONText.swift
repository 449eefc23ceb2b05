/// JSON in and out, by its tokens (RFC 8259): numbers and the order of members stay as they are.
package enum JSONText {
    /// The JSON with one member on a line, indented by two spaces.
    ///
    /// Characters that control a terminal are escaped, so that it can be shown.
    ///
    /// - Returns: Nil if the bytes are no JSON, or if it would be longer than four times the bytes and 1 MiB.
    package static func pretty(_ bytes: [UInt8]) -> [UInt8]? { Reader.read(bytes, isPretty: true) }

    /// The JSON in one line, without spaces between its tokens; nil if the bytes are no JSON.
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
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\":
                output.append(UInt8(ascii: "\\"))
                output.append(UInt8(ascii: scalar))
            case "\n": output += #"\n"#.utf8
            case "\r": output += #"\r"#.utf8
            case "\t": output += #"\t"#.utf8
            default: append(scalar, to: &output)
            }
        }
        output.append(UInt8(ascii: "\""))
    }

    /// Appends a character of a string; one that controls a terminal by its number.
    fileprivate static func append(_ scalar: Unicode.Scalar, to output: inout [UInt8]) {
        guard TerminalText.isDeceptive(scalar) else {
            return output += Unicode.UTF8.encode(scalar).map { Array($0) } ?? []
        }
        // All of them are below U+10000.
        output += #"\u"#.utf8
        let number = UInt16(truncatingIfNeeded: scalar.value)
        Hexadecimal.append([UInt8(number >> 8), UInt8(number & 0xFF)], to: &output)
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
    /// The longest output, in bytes: nesting makes indented JSON much longer.
    private let limit: Int
    private static let deepest = 256

    static func read(_ bytes: [UInt8], isPretty: Bool) -> [UInt8]? {
        // RFC 8259, 8.1.
        guard String(validating: bytes, as: UTF8.self) != nil else { return nil }
        var reader = Reader(bytes: bytes, isPretty: isPretty)
        reader.skipSpace()
        guard reader.value(depth: 0) else { return nil }
        reader.skipSpace()
        return reader.position == bytes.count ? reader.output : nil
    }

    private init(bytes: [UInt8], isPretty: Bool) {
        self.bytes = bytes
        self.isPretty = isPretty
        limit = isPretty ? 4 * bytes.count + (1 << 20) : .max
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
            guard output.count <= limit else { return false }
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

    /// Takes a string (RFC 8259, 7).
    private mutating func string() -> Bool {
        var begin = position
        guard take(UInt8(ascii: "\"")) else { return false }
        while let byte = next {
            position += 1
            switch byte {
            case UInt8(ascii: "\""):
                output += bytes[begin..<position]
                return true
            case UInt8(ascii: "\\"):
                guard escape() else { return false }
            case 0..<0x20: return false
            case 0x20..<0x7F: break
            default:
                let first = position - 1
                while let next, next & 0xC0 == 0x80 { position += 1 }
                let character = String(decoding: bytes[first..<position], as: UTF8.self)
                guard let scalar = character.unicodeScalars.first,
                    TerminalText.isDeceptive(scalar)
                else { break }
                output += bytes[begin..<first]
                JSONText.append(scalar, to: &output)
                begin = position
            }
        }
        return false
    }

    /// Takes what follows a backslash.
    private mutating func escape() -> Bool {
        guard let byte = next else { return false }
        position += 1
        guard byte == UInt8(ascii: "u") else { return #""\/bfnrt"#.utf8.contains(byte) }
        for _ in 0..<4 {
            guard let next, Unicode.Scalar(next).properties.isASCIIHexDigit else { return false }
            position += 1
        }
        return true
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
