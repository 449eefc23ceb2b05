extension String {
    /// A topic as it may be shown: up to a question mark, since tokens travel in queries.
    var withoutQuery: String {
        guard let mark = firstIndex(of: "?") else { return self }
        return self[..<mark] + "?…"
    }
}
