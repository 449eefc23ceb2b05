import WireCore

/// The attributes of one message of SCRAM (RFC 5802, 7).
package struct SCRAMMessage: Sendable {
    /// The longest message to accept: 4 KiB.
    package static let maximumByteCount = 4_096

    /// An attribute: its letter and its value.
    struct Attribute: Sendable {
        let name: UInt8
        let value: ArraySlice<UInt8>
    }

    private var attributes: ArraySlice<Attribute>

    /// Divides a message at its commas.
    ///
    /// - Throws: `tooLong`, `malformed`; `extensionNotSupported` for a message that begins with `m`.
    init(_ bytes: ArraySlice<UInt8>) throws(SCRAMFailure) {
        guard bytes.count <= Self.maximumByteCount else { throw .tooLong }
        // NUL, and everything that is not ASCII, appears only in values that this side does not take.
        guard !bytes.contains(0) else { throw .malformed }
        var list: [Attribute] = []
        for part in bytes.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false) {
            guard let name = part.first, Self.isLetter(name), part.count > 2,
                part[part.startIndex + 1] == UInt8(ascii: "=")
            else { throw .malformed }
            list.append(Attribute(name: name, value: part.dropFirst(2)))
        }
        guard list.first?.name != UInt8(ascii: "m") else { throw .extensionNotSupported }
        attributes = list[...]
    }

    private static func isLetter(_ byte: UInt8) -> Bool {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
            || (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte)
    }

    /// Takes the next attribute, which must have a name.
    ///
    /// - Throws: `malformed`.
    mutating func take(_ name: Unicode.Scalar) throws(SCRAMFailure) -> ArraySlice<UInt8> {
        guard let next = attributes.first, next.name == UInt8(ascii: name) else {
            throw .malformed
        }
        attributes.removeFirst()
        return next.value
    }

    /// Takes the next attribute, if it has a name.
    mutating func takeIfPresent(_ name: Unicode.Scalar) -> ArraySlice<UInt8>? {
        guard let next = attributes.first, next.name == UInt8(ascii: name) else { return nil }
        attributes.removeFirst()
        return next.value
    }

    /// Takes a nonce: printable characters without commas.
    ///
    /// - Throws: `malformed`.
    mutating func takeNonce() throws(SCRAMFailure) -> [UInt8] {
        let nonce = Array(try take("r"))
        guard nonce.allSatisfy(Self.isNonceCharacter) else { throw .malformed }
        return nonce
    }

    /// Takes bytes in Base 64.
    ///
    /// - Throws: `malformed`.
    mutating func takeBase64(_ name: Unicode.Scalar) throws(SCRAMFailure) -> [UInt8] {
        guard let bytes = Base64.decode(try take(name)), !bytes.isEmpty else { throw .malformed }
        return bytes
    }

    /// Takes a number that is positive, without leading zeros and below 10,000,000,000.
    ///
    /// - Throws: `malformed`.
    mutating func takeNumber(_ name: Unicode.Scalar) throws(SCRAMFailure) -> Int {
        let digits = try take(name)
        let isNumber = digits.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        guard isNumber, digits.first != UInt8(ascii: "0"), digits.count <= 10 else {
            throw .malformed
        }
        let number = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        guard let number = Int(exactly: number) else { throw .malformed }
        return number
    }

    /// Checks that no attribute is left.
    ///
    /// - Throws: `malformed`.
    func expectEnd() throws(SCRAMFailure) {
        guard attributes.isEmpty else { throw .malformed }
    }

    // MARK: Characters

    /// Whether a byte may be in a nonce: printable ASCII without the comma.
    static func isNonceCharacter(_ byte: UInt8) -> Bool {
        (0x21...0x7E).contains(byte) && byte != UInt8(ascii: ",")
    }

    /// Whether a text needs no preparation (RFC 4013): printable ASCII, at least one character.
    ///
    /// SASLprep changes no such text, and forbids the other characters of ASCII.
    static func isPrepared(_ text: String) -> Bool {
        !text.isEmpty && text.utf8.allSatisfy { (0x20...0x7E).contains($0) }
    }

    /// The user name with `=3D` for each equals sign and `=2C` for each comma.
    static func escape(_ name: String) -> [UInt8] {
        name.utf8.reduce(into: []) { bytes, byte in
            switch byte {
            case UInt8(ascii: "="): bytes += Array("=3D".utf8)
            case UInt8(ascii: ","): bytes += Array("=2C".utf8)
            default: bytes.append(byte)
            }
        }
    }

    /// The user name of its escaped form.
    ///
    /// - Throws: `malformed` for an equals sign that begins neither `=3D` nor `=2C`.
    static func unescape(_ bytes: ArraySlice<UInt8>) throws(SCRAMFailure) -> String {
        var name: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "=") else {
                name.append(byte)
                continue
            }
            switch Array(rest.prefix(2)) {
            case Array("3D".utf8): name.append(UInt8(ascii: "="))
            case Array("2C".utf8): name.append(UInt8(ascii: ","))
            default: throw .malformed
            }
            rest = rest.dropFirst(2)
        }
        let isText = name.withUnsafeBytes { UTF8Validation.scan($0).isWellFormed }
        guard isText else { throw .malformed }
        return String(decoding: name, as: UTF8.self)
    }
}
