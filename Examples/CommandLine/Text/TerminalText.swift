/// Text of others in a form that controls no terminal.
package enum TerminalText {
    /// The text in one line: control characters, line separators and the marks that reorder text (Unicode Standard Annex 9)
    /// are written as their numbers, such as `\u{1b}`.
    package static func escaped(_ text: String) -> String {
        guard text.utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F }),
            text.unicodeScalars.contains(where: isDeceptive)
        else { return text }
        return text.unicodeScalars.reduce(into: "") { text, scalar in
            if isDeceptive(scalar) {
                text += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
    }

    /// The text with a space for each character that ``escaped(_:)`` would write as a number.
    package static func spaced(_ text: String) -> String {
        String(String.UnicodeScalarView(text.unicodeScalars.map { isDeceptive($0) ? " " : $0 }))
    }

    /// A body for a terminal: as ``escaped(_:)``, but tabs and line feeds stay; a byte that is no UTF-8 becomes `\x9b`.
    package static func escaped(body: [UInt8]) -> [UInt8] {
        guard body.contains(where: { $0 < 0x20 || $0 >= 0x7F }) else { return body }
        var output: [UInt8] = []
        output.reserveCapacity(body.count)
        var parser = Unicode.UTF8.ForwardParser()
        var bytes = body.makeIterator()
        var position = 0
        while true {
            switch parser.parseScalar(from: &bytes) {
            case .valid(let encoded):
                position += encoded.count
                let scalar = Unicode.UTF8.decode(encoded)
                if scalar != "\n", scalar != "\t", isDeceptive(scalar) {
                    output += "\\u{\(String(scalar.value, radix: 16))}".utf8
                } else {
                    output += encoded
                }
            case .error(let length):
                for byte in body[position..<position + length] {
                    output += #"\x"#.utf8
                    Hexadecimal.append([byte], to: &output)
                }
                position += length
            case .emptyInput: return output
            }
        }
    }

    /// Whether a character controls a terminal, or hides or reorders what stands around it.
    package static func isDeceptive(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // C0, delete and C1.
        case 0..<0x20, 0x7F..<0xA0: true
        // The Arabic letter mark; marks, embeddings, overrides and isolates.
        case 0x61C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        // Line and paragraph separators, and the byte order mark.
        case 0x2028...0x2029, 0xFEFF: true
        default: false
        }
    }
}
