extension String {
    /// The text in a form that is safe to show, for text from a peer.
    ///
    /// The result is one line, and has no characters that control a terminal or reorder the text around it.
    ///
    /// Control characters, line and paragraph separators, and the marks of bidirectional text (Unicode Standard Annex
    /// 9) are written as their numbers, such as `\u{202e}`. All other characters stay.
    ///
    /// - Complexity: O(n); nothing is copied if all characters are printable ASCII.
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

    /// A peer's text for a description: ``escaped``, and no more than 256 scalars of it.
    package var excerpt: String {
        // By scalars: a single character may have any number of them.
        guard utf8.count > 256,
            let end = unicodeScalars.index(startIndex, offsetBy: 256, limitedBy: endIndex),
            end < endIndex
        else { return escaped }
        return String(unicodeScalars[..<end]).escaped + "…"
    }

    private static func isDeceptive(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        // C0, delete and C1.
        case 0..<0x20, 0x7F..<0xA0: true
        // The Arabic letter mark; marks, embeddings, overrides and isolates.
        case 0x61C, 0x200E...0x200F, 0x202A...0x202E, 0x2066...0x2069: true
        // Line and paragraph separators.
        case 0x2028...0x2029: true
        // The byte order mark, which is invisible.
        case 0xFEFF: true
        default: false
        }
    }
}
