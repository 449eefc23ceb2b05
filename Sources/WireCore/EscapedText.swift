extension String {
    /// The text as it may be shown, where it comes from a peer: in one line, and with nothing that a terminal obeys or
    /// that reorders what stands around it.
    ///
    /// Control characters, separators of lines and paragraphs, and the marks of bidirectional text (Unicode Standard
    /// Annex 9) are written as their numbers, such as `\u{202e}`. All else stays.
    ///
    /// - Complexity: O(n); nothing is copied where all is printable ASCII.
    package var escaped: String {
        guard utf8.contains(where: { $0 < 0x20 || $0 >= 0x7F }) else { return self }
        guard unicodeScalars.contains(where: Self.isDeceptive) else { return self }
        return unicodeScalars.reduce(into: "") { text, scalar in
            if Self.isDeceptive(scalar) {
                text += "\\u{\(String(scalar.value, radix: 16))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
    }

    private static func isDeceptive(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // C0, delete and C1.
        case 0..<0x20, 0x7F..<0xA0: true
        // The Arabic letter mark; marks, embeddings, overrides and isolates.
        case 0x61C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        // The separators of lines and paragraphs.
        case 0x2028...0x2029: true
        // The byte order mark: it does not show.
        case 0xFEFF: true
        default: false
        }
    }
}
