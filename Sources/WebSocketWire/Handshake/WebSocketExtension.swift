import HTTPWire
import WireCore

/// An extension with its parameters, as in `Sec-WebSocket-Extensions` (RFC 6455, 9.1).
package struct WebSocketExtension: Sendable {
    package var name: String
    package var parameters: [(name: String, value: String?)]

    /// Reads the values of all fields of that name.
    ///
    /// - Returns: The extensions in order; nil if one is malformed.
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
            let halves = part.split(atByte: "=", maxSplits: 1).map { HTTPSyntax.trimmed($0) }
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

    /// Splits a text at separators outside of quotes.
    private static func split(_ text: String, at separator: Unicode.Scalar) -> [String] {
        var parts = [String.UnicodeScalarView()]
        var isQuoted = false
        // By scalars: a combining mark after a separator would form another character with it.
        for scalar in text.unicodeScalars {
            if scalar == "\"" { isQuoted.toggle() }
            if scalar == separator, !isQuoted {
                parts.append(String.UnicodeScalarView())
            } else {
                parts[parts.count - 1].append(scalar)
            }
        }
        return parts.map { String($0) }
    }

    /// A value without its quotes; a quoted value must be a token, too (RFC 6455, 9.1).
    private static func unquoted(_ value: String) -> String? {
        guard value.hasBytePrefix("\"") else { return value }
        guard value.utf8.count >= 2, value.hasByteSuffix("\"") else { return nil }
        let inner = Substring(value.utf8.dropFirst().dropLast())
        return String(String.UnicodeScalarView(inner.unicodeScalars.filter { $0 != "\\" }))
    }
}
