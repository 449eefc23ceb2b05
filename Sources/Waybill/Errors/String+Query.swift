extension String {
    /// A topic as it may be shown: up to a question mark, since tokens travel in queries.
    package var withoutQuery: String {
        // By bytes: a combining mark behind the question mark would make another character of it.
        guard let mark = utf8.firstIndex(of: UInt8(ascii: "?")) else { return self }
        return String(Substring(utf8[..<mark])) + "?…"
    }
}
