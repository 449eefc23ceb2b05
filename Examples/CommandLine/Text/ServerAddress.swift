/// A server's URL, as far as the command has to know it.
package struct ServerAddress: Sendable, Equatable {
    /// A protocol above the connection.
    package enum Family: String, Sendable, CaseIterable {
        case mqtt
        case stomp
        case events
    }

    package let scheme: String
    package let host: String
    package let port: Int
    /// The path with its query and fragment, from its slash on; empty without one.
    package let path: String
    package let hasPassword: Bool
    package let userName: String?
    /// The URL without user, password, query and fragment, for output.
    package var shown: String {
        let path = path.prefix { $0 != "?" && $0 != "#" }
        // An @ within a part of the path may be the end of a password that has a slash: user:9/secret@host.
        let isOfUser = zip(path, path.dropFirst()).contains { $0 != "/" && $1 == "@" }
        return "\(scheme)://\(authority)\(isOfUser ? "/…" : path)"
    }

    private static let ports = [
        "mqtt": 1_883, "mqtts": 8_883, "ws": 80, "wss": 443, "stomp": 61_613, "stomps": 61_614,
        "http": 80, "https": 443,
    ]

    /// The host and the port, if it is not the scheme's own.
    package var authority: String {
        Self.ports[scheme] == port ? host : "\(host):\(port)"
    }

    /// Whether the connection is secured by TLS.
    package var isSecure: Bool { ["mqtts", "wss", "stomps", "https"].contains(scheme) }
    /// Whether the connection is a WebSocket.
    package var isWebSocket: Bool { scheme == "ws" || scheme == "wss" }

    /// The protocol that the scheme names; nil for a WebSocket, where an option names it.
    package var family: Family? {
        switch scheme {
        case "mqtt", "mqtts": .mqtt
        case "stomp", "stomps": .stomp
        case "http", "https": .events
        default: nil
        }
    }

    /// Reads a URL.
    ///
    /// - Throws: `TextError` that says what is wrong.
    package init(_ url: String) throws(TextError) {
        let schemes = "mqtt, mqtts, ws, wss, stomp, stomps, http or https"
        guard let mark = url.range(of: "://") else {
            // It is not repeated, since it may have a password.
            throw TextError("the server is no URL: write mqtt://HOST, or \(schemes)")
        }
        scheme = url[..<mark.lowerBound].lowercased()
        guard let usual = Self.ports[scheme] else {
            let isName = scheme.allSatisfy { $0.isASCII && $0.isLetter }
            let given = isName ? Shell.quoted(scheme) : "what is before ://"
            throw TextError("the scheme of a URL is \(schemes), not \(given)")
        }
        let rest = url[mark.upperBound...]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "#" } ?? rest.endIndex
        path = String(rest[end...])
        var place = rest[..<end]
        guard !path.contains("@") || ["ws", "wss", "http", "https"].contains(scheme) else {
            throw TextError("in a URL, write a slash of a password as %2F and an @ as %40")
        }
        var user: Substring?
        if let at = place.lastIndex(of: "@") {
            user = place[..<at]
            place = place[place.index(after: at)...]
        }
        hasPassword = user?.contains(":") == true
        userName = user.map { String($0.prefix { $0 != ":" }) }
        // A colon within brackets is a part of an IPv6 address (RFC 3986, 3.2.2).
        let colon = place.lastIndex(of: ":")
        let bracket = place.lastIndex(of: "]")
        if let colon, bracket.map({ $0 < colon }) ?? true {
            guard let number = Int(place[place.index(after: colon)...]), 1...65_535 ~= number
            else { throw TextError("the port of the URL is no number from 1 to 65535") }
            port = number
            place = place[..<colon]
        } else {
            port = usual
        }
        guard !place.isEmpty else { throw TextError("the URL has no host: write \(scheme)://HOST") }
        host = String(place)
    }
}

extension String {
    fileprivate func range(of part: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(part) { return start..<index(start, offsetBy: part.count) }
            start = index(after: start)
        }
        return nil
    }
}
