import WireCore

/// The bytes that are allowed in a head (RFC 9110, 5.5 and 5.6.2).
package enum HTTPSyntax {
    /// Whether a byte is allowed in a token: a method or a field name.
    package static func isTokenByte(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    /// Whether a text is a token.
    package static func isToken(_ text: some StringProtocol) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy(isTokenByte)
    }

    /// Whether a byte is allowed in a field value: no control character except the tab.
    package static func isValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }

    /// Whether a byte is allowed in a request target: visible ASCII (RFC 9112, 3.2).
    package static func isTargetByte(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F
    }

    /// Whether two names are equal without regard to the case of ASCII letters.
    package static func areSameName(_ left: some StringProtocol, _ right: some StringProtocol)
        -> Bool
    {
        left.hasSameBytesIgnoringASCIICase(as: right)
    }

    /// A text without surrounding white space (RFC 9110, 5.6.3).
    package static func trimmed(_ text: some StringProtocol) -> String {
        // By scalars: a combining mark after a space would form another character with it.
        let isSpace = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" }
        let front = text.unicodeScalars.drop(while: isSpace)
        guard let last = front.lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(String.UnicodeScalarView(front[...last]))
    }

    /// The number of a text of 1 to 18 digits; nil for anything else.
    package static func number(_ text: some StringProtocol) -> Int? {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy(digits.contains) else {
            return nil
        }
        return Int(text)
    }
}
