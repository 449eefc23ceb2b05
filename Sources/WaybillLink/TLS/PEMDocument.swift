import WireCore

/// A PEM file (RFC 7468): blocks of base 64 between lines with a label.
package struct PEMDocument: Equatable, Sendable {
    /// The content between a `-----BEGIN` and its `-----END`.
    package struct Block: Equatable, Sendable {
        /// The label, such as `CERTIFICATE`.
        package var label: String
        /// The DER in the block.
        package var bytes: [UInt8]
    }

    /// The blocks in the file's order; text around them is dropped.
    package let blocks: [Block]

    /// Reads a file; nil if it has no block, or a block that is incomplete or is not base 64.
    ///
    /// - Parameter text: The file's bytes.
    package init?(_ text: [UInt8]) {
        var blocks: [Block] = []
        var label: String?
        var digits: [UInt8] = []
        for line in text.split(whereSeparator: { $0 == 10 || $0 == 13 }) {
            let line = String(decoding: line, as: UTF8.self)
            if let name = Self.name(of: line, after: "-----BEGIN ") {
                guard label == nil else { return nil }
                label = name
                digits = []
            } else if let name = Self.name(of: line, after: "-----END ") {
                guard name == label, let bytes = Self.decode(digits) else { return nil }
                blocks.append(Block(label: name, bytes: bytes))
                label = nil
            } else if label != nil {
                digits += line.utf8
            }
        }
        guard label == nil, !blocks.isEmpty else { return nil }
        self.blocks = blocks
    }

    /// Returns the certificates in a file, each as DER; a file that begins as DER is one certificate.
    ///
    /// - Parameter file: The file's bytes.
    /// - Returns: The certificates; nil if the PEM is invalid or has none.
    package static func certificates(in file: [UInt8]) -> [[UInt8]]? {
        // DER begins with the tag of a sequence.
        if file.first == 0x30 { return [file] }
        let labels = ["CERTIFICATE", "X509 CERTIFICATE"]
        let found = Self(file)?.blocks.filter { labels.contains($0.label) }.map(\.bytes)
        return found.flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The label of a line that begins or ends a block (RFC 7468, 3); trailing space is allowed.
    private static func name(of line: String, after marker: String) -> String? {
        guard line.hasBytePrefix(marker),
            let last = line.lastIndex(where: { $0 != " " && $0 != "\t" })
        else { return nil }
        let rest = line[...last].dropFirst(marker.count)
        return rest.hasByteSuffix("-----") ? String(rest.dropLast(5)) : nil
    }

    /// Decodes base 64 (RFC 4648, 4) with white space in it.
    private static func decode(_ text: [UInt8]) -> [UInt8]? {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.count / 4 * 3)
        var word: UInt32 = 0
        var count = 0
        var padding = 0
        for character in text where character != 0x20 && character != 0x09 {
            if character == UInt8(ascii: "=") {
                padding += 1
                continue
            }
            guard padding == 0, let value = value(of: character) else { return nil }
            word = word << 6 | value
            count += 1
            if count % 4 == 0 {
                bytes += [UInt8(word >> 16 & 0xFF), UInt8(word >> 8 & 0xFF), UInt8(word & 0xFF)]
                word = 0
            }
        }
        switch (count % 4, padding) {
        case (0, 0): return bytes
        case (2, 2) where word & 0xF == 0: return bytes + [UInt8(word >> 4 & 0xFF)]
        case (3, 1) where word & 0x3 == 0:
            return bytes + [UInt8(word >> 10 & 0xFF), UInt8(word >> 2 & 0xFF)]
        default: return nil
        }
    }

    private static func value(of character: UInt8) -> UInt32? {
        switch character {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): UInt32(character) - 0x41
        case UInt8(ascii: "a")...UInt8(ascii: "z"): UInt32(character) - 0x61 + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt32(character) - 0x30 + 52
        case UInt8(ascii: "+"): 62
        case UInt8(ascii: "/"): 63
        default: nil
        }
    }
}
