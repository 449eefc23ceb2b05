extension String {
    /// A topic as it may be shown: up to the question mark, because queries can carry tokens.
    package var withoutQuery: String {
        // By bytes: a combining mark after the question mark would form another character with it.
        guard let mark = utf8.firstIndex(of: UInt8(ascii: "?")) else { return self }
        return String(Substring(utf8[..<mark])) + "?…"
    }
}
