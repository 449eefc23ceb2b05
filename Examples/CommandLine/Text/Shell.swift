/// Arguments for a shell.
package enum Shell {
    /// The argument as a POSIX shell reads it back, within single quotes where it needs them.
    ///
    /// POSIX.1-2017, Shell Command Language, 2.2.2. An argument with characters that control a terminal is within `$'...'`
    /// (POSIX.1-2024, 2.2.4), with these as the numbers of their bytes.
    package static func quoted(_ argument: String) -> String {
        guard argument.isEmpty || !argument.utf8.allSatisfy(isPlain) else { return argument }
        if argument.unicodeScalars.contains(where: TerminalText.isDeceptive) {
            return numbered(argument)
        }
        var text = "'"
        for character in argument.unicodeScalars {
            if character == "'" { text += #"'\''"# } else { text.unicodeScalars.append(character) }
        }
        return text + "'"
    }

    private static func numbered(_ argument: String) -> String {
        var text = Array("$'".utf8)
        for scalar in argument.unicodeScalars {
            let bytes = Array(String(scalar).utf8)
            if TerminalText.isDeceptive(scalar) {
                for byte in bytes {
                    text += #"\x"#.utf8
                    Hexadecimal.append([byte], to: &text)
                }
            } else {
                if scalar == "'" || scalar == "\\" { text.append(UInt8(ascii: "\\")) }
                text += bytes
            }
        }
        return String(decoding: text, as: UTF8.self) + "'"
    }

    /// A command with its arguments quoted.
    package static func line(_ arguments: [String]) -> String {
        arguments.map(quoted).joined(separator: " ")
    }

    private static func isPlain(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
            UInt8(ascii: "."), UInt8(ascii: "/"), UInt8(ascii: ":"), UInt8(ascii: "="),
            UInt8(ascii: "@"), UInt8(ascii: ","), UInt8(ascii: "+"), UInt8(ascii: "%"):
            true
        default: false
        }
    }
}
