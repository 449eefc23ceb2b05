import WireCore

/// The parameters of permessage-deflate (RFC 7692, 7.1), as offered or as agreed.
package struct PermessageDeflate: Hashable, Sendable {
    /// Whether the server compresses each message separately (7.1.1.1).
    package var serverNoContextTakeover = false
    /// Whether the client compresses each message separately (7.1.1.2).
    package var clientNoContextTakeover = false
    /// The server's window, as a power of two from 8 to 15 (7.1.2.1).
    package var serverMaxWindowBits = 15
    /// The client's window, as a power of two from 8 to 15 (7.1.2.2); nil if an offer does not allow to limit it.
    package var clientMaxWindowBits: Int?

    package init(
        serverNoContextTakeover: Bool = false,
        clientNoContextTakeover: Bool = false,
        serverMaxWindowBits: Int = 15,
        clientMaxWindowBits: Int? = 15
    ) {
        self.serverNoContextTakeover = serverNoContextTakeover
        self.clientNoContextTakeover = clientNoContextTakeover
        self.serverMaxWindowBits = min(max(serverMaxWindowBits, 8), 15)
        self.clientMaxWindowBits = clientMaxWindowBits.map { min(max($0, 8), 15) }
    }

    static let name = "permessage-deflate"

    /// The client's offer, as the value of `Sec-WebSocket-Extensions`.
    package var offer: String {
        var text = Self.name
        if let clientMaxWindowBits {
            text += "; client_max_window_bits"
            if clientMaxWindowBits < 15 { text += "=\(clientMaxWindowBits)" }
        }
        return text + commonParameters
    }

    /// The server's answer, as the value of `Sec-WebSocket-Extensions`.
    package var response: String {
        var text = Self.name
        if let clientMaxWindowBits, clientMaxWindowBits < 15 {
            text += "; client_max_window_bits=\(clientMaxWindowBits)"
        }
        return text + commonParameters
    }

    private var commonParameters: String {
        var text = ""
        if serverMaxWindowBits < 15 { text += "; server_max_window_bits=\(serverMaxWindowBits)" }
        if serverNoContextTakeover { text += "; server_no_context_takeover" }
        if clientNoContextTakeover { text += "; client_no_context_takeover" }
        return text
    }

    /// The parameters that a server's answer to this offer agrees to.
    ///
    /// - Returns: The parameters; nil if the answer is invalid, so that the connection must fail (RFC 7692, 7.1:
    ///   unknown, repeated or malformed parameters, or parameters that were not offered).
    package func agreed(with answer: WebSocketExtension) -> PermessageDeflate? {
        guard let found = Self.read(answer, isOffer: false) else { return nil }
        // A limit on the client's window is valid only if it was offered (7.1.2.2).
        guard found.clientMaxWindowBits == nil || clientMaxWindowBits != nil else { return nil }
        // The server must have accepted what the offer demands of it (7.1.1.1, 7.1.2.1).
        guard found.serverMaxWindowBits <= serverMaxWindowBits,
            found.serverNoContextTakeover || !serverNoContextTakeover
        else { return nil }
        var agreed = found
        agreed.clientMaxWindowBits = min(found.clientMaxWindowBits ?? 15, clientMaxWindowBits ?? 15)
        agreed.clientNoContextTakeover = found.clientNoContextTakeover || clientNoContextTakeover
        return agreed
    }

    /// The parameters with which a server accepts an offer; nil to decline it.
    package func accepting(_ offer: WebSocketExtension) -> PermessageDeflate? {
        guard let found = Self.read(offer, isOffer: true) else { return nil }
        var agreed = PermessageDeflate()
        agreed.serverNoContextTakeover = found.serverNoContextTakeover || serverNoContextTakeover
        agreed.clientNoContextTakeover = found.clientNoContextTakeover || clientNoContextTakeover
        agreed.serverMaxWindowBits = min(found.serverMaxWindowBits, serverMaxWindowBits)
        // A window below zlib's minimum is declined.
        guard agreed.serverMaxWindowBits > 8 else { return nil }
        agreed.clientMaxWindowBits = found.clientMaxWindowBits.map {
            min($0, clientMaxWindowBits ?? 15)
        }
        return agreed
    }

    /// Reads parameters; nil if one of them is invalid.
    private static func read(_ source: WebSocketExtension, isOffer: Bool) -> PermessageDeflate? {
        var found = PermessageDeflate(clientMaxWindowBits: nil)
        var seen: Set<WireName> = []
        for (name, value) in source.parameters {
            guard seen.insert(WireName(name)).inserted else { return nil }
            switch (name, value) {
            case ("server_no_context_takeover", nil): found.serverNoContextTakeover = true
            case ("client_no_context_takeover", nil): found.clientNoContextTakeover = true
            case ("server_max_window_bits", let value?):
                guard let bits = windowBits(value) else { return nil }
                found.serverMaxWindowBits = bits
            case ("client_max_window_bits", nil) where isOffer: found.clientMaxWindowBits = 15
            case ("client_max_window_bits", let value?):
                guard let bits = windowBits(value) else { return nil }
                found.clientMaxWindowBits = bits
            default: return nil
            }
        }
        return found
    }

    /// Reads a number from 8 to 15 without leading zeros (RFC 7692, 7.1.2).
    private static func windowBits(_ text: String) -> Int? {
        guard let bits = Int(text), (8...15).contains(bits), text == String(bits) else {
            return nil
        }
        return bits
    }

    // MARK: Streams

    /// The decompressor of a side, which reads what the other side has compressed.
    func inflater(for role: WebSocketRole) -> Inflater? {
        let (bits, keepsContext) = window(of: role == .client ? .server : .client)
        // A larger window than agreed can decode everything that a smaller one can.
        return Inflater(windowBits: max(bits, 9), keepsContext: keepsContext)
    }

    /// The compressor of a side; nil to send messages uncompressed.
    func deflater(for role: WebSocketRole) -> Deflater? {
        let (bits, keepsContext) = window(of: role)
        // zlib has no window of 8 bits for raw data.
        guard bits > 8 else { return nil }
        return Deflater(windowBits: bits, keepsContext: keepsContext)
    }

    private func window(of role: WebSocketRole) -> (bits: Int, keepsContext: Bool) {
        switch role {
        case .client: (clientMaxWindowBits ?? 15, !clientNoContextTakeover)
        case .server: (serverMaxWindowBits, !serverNoContextTakeover)
        }
    }
}
