import HTTPWire
package import Waybill
package import WaybillLink
import WireCore

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// The contents of a service's URL: scheme, endpoint, credentials, and path.
package struct ServiceAddress: Hashable, Sendable {
    /// A scheme that a transport supports.
    package struct Scheme: Hashable, Sendable {
        /// The scheme in lower case, such as `mqtt`.
        package let name: String
        /// The port if the URL has none.
        package let port: UInt16
        /// Whether the URL has a path and a query.
        package let hasPath: Bool
        /// Whether the connection uses TLS.
        package let isSecure: Bool

        /// A scheme for a protocol directly over TCP or TLS.
        package static func tcp(_ name: String, port: UInt16, isSecure: Bool = false) -> Scheme {
            Scheme(name: name, port: port, hasPath: false, isSecure: isSecure)
        }

        /// A scheme for a protocol within HTTP or WebSocket.
        package static func http(_ name: String, port: UInt16, isSecure: Bool = false) -> Scheme {
            Scheme(name: name, port: port, hasPath: true, isSecure: isSecure)
        }
    }

    /// The scheme.
    package let scheme: Scheme
    /// The host and the port.
    package private(set) var endpoint: Endpoint
    /// The user name, without percent encoding.
    package let userName: String?
    /// The password, without percent encoding.
    package let password: String?
    /// Path and query in the form of a request target (RFC 9112, 3.2.1): percent-encoded, at least `/`.
    ///
    /// Always `/` for a scheme without a path.
    package private(set) var path: String
    /// Whether one connection has named an origin that is not one of its service's.
    ///
    /// What the service's configuration has to keep secret does not go there.
    package internal(set) var isForeign = false

    /// Reads `scheme://user:password@host:port/path?query`.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - protocolName: The protocol, such as `MQTT`.
    ///   - schemes: The supported schemes, the most common one first.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for an invalid URL.
    package init(
        _ url: URL,
        for protocolName: String,
        schemes: [Scheme]
    ) throws(WaybillError) {
        guard let name = url.scheme?.asciiLowercased else {
            let example = schemes.first.map { ", such as \($0.name)://" } ?? ""
            throw WaybillError(.invalidEntry, "the URL has no scheme\(example)")
        }
        guard let scheme = schemes.first(where: { $0.name == name }) else {
            let known = schemes.map { "\($0.name)://" }.joined(separator: ", ")
            throw WaybillError(
                .unsupported,
                "\(protocolName) is not spoken over \(name)://; the URL can begin with \(known)"
            )
        }
        self.scheme = scheme
        endpoint = try Self.endpoint(of: url, default: scheme.port)
        userName = url.user(percentEncoded: false)
        password = url.password(percentEncoded: false)
        path = try Self.path(of: url, scheme)
    }

    private static func endpoint(
        of url: URL,
        default defaultPort: UInt16
    ) throws(WaybillError) -> Endpoint {
        guard let text = url.host(percentEncoded: false), !text.isEmpty else {
            throw WaybillError(.invalidEntry, "the URL names no host")
        }
        guard let host = host(text) else {
            throw WaybillError(.invalidEntry, "the URL names no possible host")
        }
        guard let port = UInt16(exactly: url.port ?? Int(defaultPort)), port > 0 else {
            throw WaybillError(.invalidEntry, "the port of the URL is not between 1 and 65535")
        }
        return Endpoint(host: host, port: port)
    }

    /// Returns a host name or an IP address without brackets.
    ///
    /// - Returns: The host; nil if the text can be neither (URL Standard, 3.1).
    package static func host(_ text: String) -> String? {
        var host = text
        if host.hasBytePrefix("["), host.hasByteSuffix("]") {
            host = String(Substring(host.utf8.dropFirst().dropLast()))
        }
        guard !host.isEmpty,
            host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F && !"\"#/<>?@[\\]^|".utf8.contains($0) })
        else { return nil }
        return host
    }

    /// Returns the same address with another host.
    ///
    /// - Parameter host: `name` or `name:port`, an IPv6 address in brackets. Without a port, the port does not change.
    /// - Returns: The address.
    /// - Throws: `invalidEntry` for an invalid host. The error does not repeat the text, which may be a URL with
    ///   credentials.
    package func moved(to host: String) throws(WaybillError) -> ServiceAddress {
        let refusal = WaybillError(
            .invalidEntry,
            "another host is not written as name or name:port"
        )
        let bytes = host.utf8
        let bracket = bytes.lastIndex(of: UInt8(ascii: "]"))
        let end = bracket.map { bytes.index(after: $0) } ?? bytes.startIndex
        let colon = bytes[end...].firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        var copy = self
        if colon < bytes.endIndex {
            let digits = Substring(bytes[bytes.index(after: colon)...])
            guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let port = UInt16(digits),
                port > 0
            else { throw refusal }
            copy.endpoint.port = port
        }
        let name = String(Substring(bytes[..<colon]))
        // An address with colons but without brackets would be ambiguous.
        guard let name = Self.host(name),
            name.utf8.contains(UInt8(ascii: ":")) == (end > bytes.startIndex)
        else {
            throw refusal
        }
        copy.endpoint.host = name
        return copy
    }

    /// Returns the same address with another endpoint.
    package func moved(to endpoint: Endpoint) -> ServiceAddress {
        var copy = self
        copy.endpoint = endpoint
        return copy
    }

    /// Returns the server that this one refers to: the same path without the query, which was signed for this host.
    func referred(to endpoint: Endpoint) -> ServiceAddress {
        var copy = moved(to: endpoint)
        if endpoint != self.endpoint {
            copy.path = String(Substring(path.utf8.prefix { $0 != UInt8(ascii: "?") }))
        }
        return copy
    }

    /// Whether both have the same scheme, host and port (RFC 6454, 5).
    package func hasSameOrigin(as other: ServiceAddress) -> Bool {
        scheme == other.scheme && endpoint.port == other.endpoint.port
            && HTTPSyntax.areSameName(endpoint.host, other.endpoint.host)
    }

    private static func path(of url: URL, _ scheme: Scheme) throws(WaybillError) -> String {
        let path = url.path()
        guard scheme.hasPath else {
            guard path.isEmpty || path == "/" else {
                throw WaybillError(.invalidEntry, "an \(scheme.name) URL has no path")
            }
            return "/"
        }
        // A fragment is never sent to the peer, and WebSocket forbids it (RFC 6455, 3).
        guard url.fragment() == nil else {
            throw WaybillError(.invalidEntry, "an address has no fragment")
        }
        let query = url.query().map { "?\($0)" } ?? ""
        return (path.isEmpty ? "/" : path) + query
    }

    /// Reads text as a URL.
    ///
    /// - Throws: `invalidEntry` if the text is not a URL.
    package static func url(_ text: String) throws(WaybillError) -> URL {
        guard let url = URL(string: text) else {
            throw WaybillError(.invalidEntry, "this is not a URL")
        }
        return url
    }
}
