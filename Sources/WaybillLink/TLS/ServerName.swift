import WireCore

/// The name or address that a client requests and must find in the certificate.
package struct ServerName: Hashable, Sendable {
    /// The name without the dot of the root (RFC 6066, 3), or the address without its zone.
    package let text: String
    /// Whether it is an address: it is not sent as the server name, and no name in a certificate matches it.
    package let isAddress: Bool

    /// Reads the name of a host or its address.
    ///
    /// - Parameter host: The host of the endpoint, without brackets.
    /// - Throws: `LinkError.tls` with `invalidSettings` for an invalid name; above all for a name with a leading dot or
    ///   asterisk, which the libraries would match with more than one host.
    package init(_ host: String) throws(LinkError) {
        let bytes = host.utf8
        if bytes.contains(UInt8(ascii: ":")) || Self.isIPv4(host) {
            let zone = bytes.firstIndex(of: UInt8(ascii: "%")) ?? bytes.endIndex
            text = String(Substring(bytes[..<zone]))
            isAddress = true
        } else {
            text = String(Substring(host.hasByteSuffix(".") ? bytes.dropLast() : bytes[...]))
            isAddress = false
        }
        let labels = text.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard labels.allSatisfy({ !$0.isEmpty }),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "*") })
        else { throw .tls(.invalidSettings("\(text) is no name for a server")) }
    }

    /// Whether the host is four decimal numbers (RFC 3986, 3.2.2).
    ///
    /// Other forms that a resolver takes for an address count as a name, which no certificate has.
    private static func isIPv4(_ host: String) -> Bool {
        let parts = host.utf8.split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        return parts.count == 4
            && parts.allSatisfy { part in
                guard part.allSatisfy({ (0x30...0x39).contains($0) }),
                    part.count == 1 || part.first != 0x30
                else { return false }
                return UInt8(String(decoding: part, as: UTF8.self)) != nil
            }
    }
}
