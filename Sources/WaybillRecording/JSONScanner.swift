import WireCore

/// The fault of a line that is no JSON object of a recording.
enum JSONFault: Error, Equatable {
    /// The bytes are no UTF-8 (RFC 8259, 8.1).
    case encoding
    /// The text breaks the grammar at a byte, counted from 0 (RFC 8259, 2 to 7).
    case syntax(Int)
    /// Arrays and objects are nested deeper than ``JSONScanner/maximumDepth``.
    case depth
    /// A key has a value of another type, or out of its range.
    case value(String)
}

/// Reads one JSON object (RFC 8259) from one line, value by value.
///
/// The bytes may be anything: each fault is an error, and no depth uses up the stack.
struct JSONScanner {
    /// The deepest nesting of the values that are skipped.
    static let maximumDepth = 64

    private let bytes: [UInt8]
    private var index = 0

    /// Takes a line.
    ///
    /// - Throws: `encoding`.
    init(_ bytes: [UInt8]) throws(JSONFault) {
        guard bytes.withUnsafeBytes({ UTF8Validation.scan($0) }).isWellFormed else {
            throw .encoding
        }
        self.bytes = bytes
    }

    /// Calls `body` with each key of the object, which then reads the value; nothing may follow the object.
    ///
    /// - Throws: `JSONFault`.
    mutating func object(
        _ body: (_ key: String, _ scanner: inout JSONScanner) throws(JSONFault) -> Void
    ) throws(JSONFault) {
        try expect(UInt8(ascii: "{"))
        if next() == UInt8(ascii: "}") {
            index += 1
        } else {
            while true {
                let key = try string()
                try expect(UInt8(ascii: ":"))
                try body(key, &self)
                if next() == UInt8(ascii: ",") {
                    index += 1
                    continue
                }
                try expect(UInt8(ascii: "}"))
                break
            }
        }
        guard next() == nil else { throw .syntax(index) }
    }

    // MARK: Values

    /// Reads a text (RFC 8259, 7).
    ///
    /// - Throws: `syntax`, also for half of a surrogate pair.
    mutating func string() throws(JSONFault) -> String {
        try expect(UInt8(ascii: "\""))
        let start = index
        while index < bytes.count, bytes[index] != UInt8(ascii: "\""),
            bytes[index] != UInt8(ascii: "\\"), bytes[index] >= 0x20
        {
            index += 1
        }
        guard index < bytes.count, bytes[index] >= 0x20 else { throw .syntax(index) }
        guard bytes[index] == UInt8(ascii: "\\") else {
            defer { index += 1 }
            return String(decoding: bytes[start..<index], as: UTF8.self)
        }
        var text = Array(bytes[start..<index])
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "\""):
                index += 1
                return String(decoding: text, as: UTF8.self)
            case UInt8(ascii: "\\"): text.append(contentsOf: String(try escapedScalar()).utf8)
            case 0..<0x20: throw .syntax(index)
            default:
                text.append(byte)
                index += 1
            }
        }
        throw .syntax(index)
    }

    /// Reads a number and returns its bytes (RFC 8259, 6).
    ///
    /// - Throws: `syntax`.
    mutating func number() throws(JSONFault) -> ArraySlice<UInt8> {
        guard next() != nil else { throw .syntax(index) }
        let start = index
        if bytes[index] == UInt8(ascii: "-") { index += 1 }
        if index < bytes.count, bytes[index] == UInt8(ascii: "0") {
            index += 1
        } else {
            try skipDigits()
        }
        if index < bytes.count, bytes[index] == UInt8(ascii: ".") {
            index += 1
            try skipDigits()
        }
        if index < bytes.count, bytes[index] | 0x20 == UInt8(ascii: "e") {
            index += 1
            if index < bytes.count,
                bytes[index] == UInt8(ascii: "+") || bytes[index] == UInt8(ascii: "-")
            {
                index += 1
            }
            try skipDigits()
        }
        return bytes[start..<index]
    }

    /// Reads an integer from 0 on; nil for any other number.
    ///
    /// - Throws: `syntax`.
    mutating func integer() throws(JSONFault) -> UInt64? {
        UInt64(String(decoding: try number(), as: UTF8.self))
    }

    /// Reads `null`, if it is next.
    mutating func null() throws(JSONFault) -> Bool {
        guard next() == UInt8(ascii: "n") else { return false }
        try skipWord("null")
        return true
    }

    /// Skips a value of any type.
    ///
    /// - Throws: `syntax`, `depth`.
    mutating func skip() throws(JSONFault) {
        // The brackets that are open, so that no depth uses the stack.
        var open: [UInt8] = []
        repeat {
            switch next() {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                guard open.count < Self.maximumDepth else { throw .depth }
                let bracket = bytes[index]
                index += 1
                // `[` + 2 is `]`, and `{` + 2 is `}`.
                guard next() != bracket + 2 else {
                    index += 1
                    break
                }
                open.append(bracket)
                try skipKey(in: bracket)
                continue
            case UInt8(ascii: "\""): _ = try string()
            case UInt8(ascii: "t"): try skipWord("true")
            case UInt8(ascii: "f"): try skipWord("false")
            case UInt8(ascii: "n"): try skipWord("null")
            default: _ = try number()
            }
            while let bracket = open.last {
                if next() == UInt8(ascii: ",") {
                    index += 1
                    try skipKey(in: bracket)
                    break
                }
                try expect(bracket + 2)
                open.removeLast()
            }
        } while !open.isEmpty
    }

    // MARK: Parts

    private mutating func skipKey(in bracket: UInt8) throws(JSONFault) {
        guard bracket == UInt8(ascii: "{") else { return }
        _ = try string()
        try expect(UInt8(ascii: ":"))
    }

    private mutating func skipDigits() throws(JSONFault) {
        let start = index
        while index < bytes.count, bytes[index] >= UInt8(ascii: "0"),
            bytes[index] <= UInt8(ascii: "9")
        {
            index += 1
        }
        guard index > start else { throw .syntax(index) }
    }

    private mutating func skipWord(_ word: StaticString) throws(JSONFault) {
        let isThere = word.withUTF8Buffer { bytes[index...].starts(with: $0) }
        guard isThere else { throw .syntax(index) }
        index += word.utf8CodeUnitCount
    }

    /// The next byte that is no white space, which stays; nil at the end.
    private mutating func next() -> UInt8? {
        while index < bytes.count {
            switch bytes[index] {
            case UInt8(ascii: " "), UInt8(ascii: "\t"), UInt8(ascii: "\r"), UInt8(ascii: "\n"):
                index += 1
            default: return bytes[index]
            }
        }
        return nil
    }

    private mutating func expect(_ byte: UInt8) throws(JSONFault) {
        guard next() == byte else { throw .syntax(index) }
        index += 1
    }

    private mutating func escapedScalar() throws(JSONFault) -> Character {
        let start = index
        guard index + 1 < bytes.count else { throw .syntax(start) }
        let letter = bytes[index + 1]
        index += 2
        switch letter {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"):
            return Character(Unicode.Scalar(letter))
        case UInt8(ascii: "b"): return "\u{8}"
        case UInt8(ascii: "f"): return "\u{C}"
        case UInt8(ascii: "n"): return "\n"
        case UInt8(ascii: "r"): return "\r"
        case UInt8(ascii: "t"): return "\t"
        case UInt8(ascii: "u"): break
        default: throw .syntax(start)
        }
        var code = try hexadecimal()
        if (0xD800..<0xDC00).contains(code) {
            guard bytes[index...].starts(with: "\\u".utf8) else { throw .syntax(start) }
            index += 2
            let low = try hexadecimal()
            guard (0xDC00..<0xE000).contains(low) else { throw .syntax(start) }
            code = 0x10000 + (code - 0xD800) << 10 + (low - 0xDC00)
        }
        guard let scalar = Unicode.Scalar(code) else { throw .syntax(start) }
        return Character(scalar)
    }

    private mutating func hexadecimal() throws(JSONFault) -> UInt32 {
        guard bytes.count - index >= 4 else { throw .syntax(index) }
        var code: UInt32 = 0
        for byte in bytes[index..<index + 4] {
            let digit: UInt8
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = byte - UInt8(ascii: "0")
            case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = byte - UInt8(ascii: "a") + 10
            case UInt8(ascii: "A")...UInt8(ascii: "F"): digit = byte - UInt8(ascii: "A") + 10
            default: throw .syntax(index)
            }
            code = code << 4 | UInt32(digit)
        }
        index += 4
        return code
    }
}
