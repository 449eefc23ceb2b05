import WireCore

/// The escapes of header names and values (STOMP 1.2, Value Encoding).
enum STOMPEscapes {
    /// Whether a letter is allowed after a backslash; `\r` came with 1.2.
    static func isDefined(_ letter: UInt8, in version: STOMPVersion) -> Bool {
        switch letter {
        case UInt8(ascii: "n"), UInt8(ascii: "c"), UInt8(ascii: "\\"): true
        case UInt8(ascii: "r"): version >= .v1_2
        default: false
        }
    }

    /// The letter after the backslash for a byte; nil if the byte needs no escape.
    static func letter(for byte: UInt8) -> UInt8? {
        switch byte {
        case UInt8(ascii: "\n"): UInt8(ascii: "n")
        case UInt8(ascii: "\r"): UInt8(ascii: "r")
        case UInt8(ascii: ":"): UInt8(ascii: "c")
        case UInt8(ascii: "\\"): UInt8(ascii: "\\")
        default: nil
        }
    }

    /// The text of bytes whose escapes were already checked.
    static func unescaped(_ bytes: UnsafeRawBufferPointer) -> String {
        var plain: [UInt8] = []
        plain.reserveCapacity(bytes.count)
        var isEscaped = false
        for byte in bytes {
            if isEscaped {
                isEscaped = false
                switch byte {
                case UInt8(ascii: "n"): plain.append(UInt8(ascii: "\n"))
                case UInt8(ascii: "r"): plain.append(UInt8(ascii: "\r"))
                case UInt8(ascii: "c"): plain.append(UInt8(ascii: ":"))
                default: plain.append(byte)
                }
            } else if byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else {
                plain.append(byte)
            }
        }
        return String(decoding: plain, as: UTF8.self)
    }
}
