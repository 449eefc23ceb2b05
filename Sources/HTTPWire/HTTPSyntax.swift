import WireCore

/// Which bytes may stand where in a head (RFC 9110, 5.5 and 5.6.2).
package enum HTTPSyntax {
    /// Whether a byte may stand in a token: a method or a field name.
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

    /// Whether a byte may stand in a field value: no control character but the tab.
    package static func isValueByte(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x09
    }

    /// Whether a byte may stand in a request target: visible ASCII (RFC 9112, 3.2).
    package static func isTargetByte(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F
    }

    /// Whether two names are the same without regard to the case of ASCII letters.
    package static func areSameName(_ left: some StringProtocol, _ right: some StringProtocol)
        -> Bool
    {
        left.hasSameBytesIgnoringASCIICase(as: right)
    }

    /// A text without the white space around it (RFC 9110, 5.6.3).
    package static func trimmed(_ text: some StringProtocol) -> String {
        // By scalars: a mark behind a space would make another character of it.
        let isSpace = { (scalar: Unicode.Scalar) in scalar == " " || scalar == "\t" }
        let front = text.unicodeScalars.drop(while: isSpace)
        guard let last = front.lastIndex(where: { !isSpace($0) }) else { return "" }
        return String(String.UnicodeScalarView(front[...last]))
    }

    /// The number that digits alone write; nil for anything else, and beyond 18 digits.
    package static func number(_ text: some StringProtocol) -> Int? {
        let digits = UInt8(ascii: "0")...UInt8(ascii: "9")
        guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy(digits.contains) else {
            return nil
        }
        return Int(text)
    }
}
