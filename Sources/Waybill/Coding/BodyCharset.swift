import WireCore

/// A character set that a content type can name, beside UTF-8 (RFC 9110, 8.3.2).
enum BodyCharset: Sendable {
    case latin1, utf16(isBigEndian: Bool?)

    private static let known: [(name: String, charset: BodyCharset)] = [
        ("iso-8859-1", .latin1), ("latin1", .latin1), ("utf-16", .utf16(isBigEndian: nil)),
        ("utf-16be", .utf16(isBigEndian: true)), ("utf-16le", .utf16(isBigEndian: false)),
    ]

    /// The character set of a content type; nil for UTF-8, for US-ASCII, which is a part of it, and for an unknown one.
    init?(ofContentType type: String) {
        var found: BodyCharset?
        for parameter in type.utf8.split(separator: UInt8(ascii: ";")).dropFirst() {
            let parts = parameter.split(separator: UInt8(ascii: "="), maxSplits: 1).map { part in
                String(Substring(part).trimmed(of: " \t\"'"))
            }
            guard parts.count == 2, parts[0].hasSameBytesIgnoringASCIICase(as: "charset") else {
                continue
            }
            found =
                Self.known.first { $0.name.hasSameBytesIgnoringASCIICase(as: parts[1]) }?.charset
        }
        guard let found else { return nil }
        self = found
    }

    /// The text of bytes; nil if they are none.
    func text(of bytes: [UInt8]) -> String? {
        guard case .utf16(var isBigEndian) = self else {
            return String(decoding: bytes.map { UInt16($0) }, as: UTF16.self)
        }
        guard bytes.count.isMultiple(of: 2) else { return nil }
        var units = stride(from: 0, to: bytes.count, by: 2).map {
            UInt16(bytes[$0]) << 8 | UInt16(bytes[$0 + 1])
        }
        // A mark decides; without one the order is big-endian (RFC 2781, 3.3 and 4.3).
        if isBigEndian == nil, let first = units.first, first == 0xFEFF || first == 0xFFFE {
            isBigEndian = first == 0xFEFF
            units.removeFirst()
        }
        if isBigEndian == false { units = units.map(\.byteSwapped) }
        // What is no text is replaced, and reads differently then.
        let text = String(decoding: units, as: UTF16.self)
        return text.utf16.elementsEqual(units) ? text : nil
    }
}

extension Substring {
    fileprivate func trimmed(of characters: String) -> Substring {
        var rest = drop { characters.contains($0) }
        while let last = rest.last, characters.contains(last) { rest.removeLast() }
        return rest
    }
}
