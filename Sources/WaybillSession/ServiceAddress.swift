package import Waybill
package import WaybillLink
import WireCore

#if canImport(FoundationEssentials)
    package import FoundationEssentials
#else
    package import Foundation
#endif

/// What a URL says: where to connect, how, and as whom.
package struct ServiceAddress: Hashable, Sendable {
    /// A scheme that a transport speaks.
    package struct Scheme: Hashable, Sendable {
        /// The scheme in lower case, such as `mqtt`.
        package let name: String
        /// The port where the URL names none.
        package let port: UInt16
        /// Whether the URL says more than who is meant: a path and a query.
        package let hasPath: Bool
        /// Whether TLS comes first.
        package let isSecure: Bool

        /// A scheme for a protocol right on top of TCP or TLS.
        package static func tcp(_ name: String, port: UInt16, isSecure: Bool = false) -> Scheme {
            Scheme(name: name, port: port, hasPath: false, isSecure: isSecure)
        }

        /// A scheme for a protocol within HTTP or WebSocket.
        package static func http(_ name: String, port: UInt16, isSecure: Bool = false) -> Scheme {
            Scheme(name: name, port: port, hasPath: true, isSecure: isSecure)
        }
    }

    /// The scheme, one of those given.
    package let scheme: Scheme
    /// Where to connect.
    package private(set) var endpoint: Endpoint
    /// The user's name, without percent encoding.
    package let userName: String?
    /// The password, without percent encoding.
    package let password: String?
    /// Path and query as a request target has them (RFC 9112, 3.2.1): percent-encoded, at least `/`.
    ///
    /// Always `/` for a scheme without a path.
    package let path: String

    /// Reads `scheme://user:password@host:port/path?query`.
    ///
    /// - Parameters:
    ///   - url: The URL.
    ///   - protocolName: The protocol for which it is read, such as `MQTT`.
    ///   - schemes: The schemes that can be spoken, the most usual one first.
    /// - Throws: `unsupported` for a scheme that cannot be spoken, `invalidEntry` for what is no such URL.
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

    /// A name or an address, without brackets.
    /// - Returns: Nil for what can be neither (URL Standard, 3.1).
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

    /// The same at another host.
    ///
    /// - Parameter host: `name` or `name:port`, an IPv6 address in brackets; the port stays unless it is named.
    /// - Returns: The address.
    /// - Throws: `invalidEntry` for what is no such host; it is not repeated, for it may be a URL with credentials.
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
        // An address with colons but without brackets could be read in two ways.
        guard let name = Self.host(name),
            name.utf8.contains(UInt8(ascii: ":")) == (end > bytes.startIndex)
        else {
            throw refusal
        }
        copy.endpoint.host = name
        return copy
    }

    private static func path(of url: URL, _ scheme: Scheme) throws(WaybillError) -> String {
        let path = url.path()
        guard scheme.hasPath else {
            guard path.isEmpty || path == "/" else {
                throw WaybillError(.invalidEntry, "an \(scheme.name) URL has no path")
            }
            return "/"
        }
        // No fragment travels to the peer, and WebSocket forbids it outright (RFC 6455, 3).
        guard url.fragment() == nil else {
            throw WaybillError(.invalidEntry, "an address has no fragment")
        }
        let query = url.query().map { "?\($0)" } ?? ""
        return (path.isEmpty ? "/" : path) + query
    }

    /// Reads text as a URL.
    /// - Throws: `invalidEntry` when it is none.
    package static func url(_ text: String) throws(WaybillError) -> URL {
        guard let url = URL(string: text) else {
            throw WaybillError(.invalidEntry, "this is not a URL")
        }
        return url
    }
}
