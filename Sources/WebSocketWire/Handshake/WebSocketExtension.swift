import HTTPWire

/// An extension with its parameters, as in `Sec-WebSocket-Extensions` (RFC 6455, 9.1).
package struct WebSocketExtension: Sendable {
    package var name: String
    package var parameters: [(name: String, value: String?)]

    /// Reads the values of all fields of that name.
    /// - Returns: The extensions in order; nil when one is malformed.
    package static func parse(_ values: [String]) -> [WebSocketExtension]? {
        var extensions: [WebSocketExtension] = []
        for value in values {
            for member in split(value, at: ",") {
                let text = HTTPSyntax.trimmed(member)
                if text.isEmpty { continue }
                guard let parsed = parse(text) else { return nil }
                extensions.append(parsed)
            }
        }
        return extensions
    }

    private static func parse(_ text: String) -> WebSocketExtension? {
        let parts = split(text, at: ";").map { HTTPSyntax.trimmed($0) }
        guard let name = parts.first, HTTPSyntax.isToken(name) else { return nil }
        var parsed = WebSocketExtension(name: name, parameters: [])
        for part in parts.dropFirst() {
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { HTTPSyntax.trimmed($0) }
            guard let name = halves.first, HTTPSyntax.isToken(name) else { return nil }
            guard halves.count > 1 else {
                parsed.parameters.append((name, nil))
                continue
            }
            guard let value = unquoted(halves[1]), HTTPSyntax.isToken(value) else { return nil }
            parsed.parameters.append((name, value))
        }
        return parsed
    }

    /// What stands between separators that are not within quotes.
    private static func split(_ text: String, at separator: Character) -> [String] {
        var parts = [""]
        var isQuoted = false
        for character in text {
            if character == "\"" { isQuoted.toggle() }
            if character == separator, !isQuoted {
                parts.append("")
            } else {
                parts[parts.count - 1].append(character)
            }
        }
        return parts
    }

    /// A value without its quotes; what is quoted must be a token all the same (RFC 6455, 9.1).
    private static func unquoted(_ value: String) -> String? {
        guard value.hasPrefix("\"") else { return value }
        guard value.count >= 2, value.hasSuffix("\"") else { return nil }
        return String(value.dropFirst().dropLast()).filter { $0 != "\\" }
    }
}
