import HTTPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Where a request goes: an origin, and what is asked of it.
struct HTTPTarget: Hashable, Sendable {
    static let addresses = ServiceAddresses(
        for: "HTTP",
        schemes: [.http("http", port: 80), secureScheme]
    )
    static let secureScheme = ServiceAddress.Scheme.http("https", port: 443, isSecure: true)

    /// The address of the origin, with the path that a URL has given.
    var address: ServiceAddress
    /// Path and query.
    var target: String

    /// Scheme, host and port (RFC 6454, 4).
    struct Origin: Hashable, Sendable {
        private let scheme: String
        private let host: String
        private let port: UInt16

        init(_ address: ServiceAddress) {
            scheme = address.scheme.name
            host = address.endpoint.host.asciiLowercased
            port = address.endpoint.port
        }
    }

    var origin: Origin { Origin(address) }

    /// The host and its port.
    var host: String { address.endpoint.description }

    init(_ url: URL) throws(WaybillError) {
        self.init(try Self.addresses.home(url))
    }

    init(_ address: ServiceAddress) {
        self.address = address
        target = address.path
    }

    /// The target of an entry: its topic behind the path of the base URL, with one slash between.
    ///
    /// A query of the base stays, before one of the topic.
    ///
    /// - Parameter topic: A path, perhaps with a query, percent-encoded; nil or empty for the base itself.
    /// - Returns: The target.
    /// - Throws: `invalidEntry` for characters that no target may hold; they are not repaired.
    func appending(_ topic: String?) throws(WaybillError) -> HTTPTarget {
        guard let topic, !topic.isEmpty else { return self }
        guard topic.utf8.allSatisfy(HTTPSyntax.isTargetByte),
            !topic.utf8.contains(UInt8(ascii: "#"))
        else {
            throw WaybillError(
                .invalidEntry,
                "the topic has characters that must be percent-encoded in a path"
            )
        }
        let (basePath, baseQuery) = Self.parts(target)
        let (path, query) = Self.parts(topic)
        var copy = self
        copy.target = String(basePath)
        if !path.isEmpty {
            if copy.target.hasByteSuffix("/") { copy.target.removeLast() }
            copy.target += (path.hasBytePrefix("/") ? "" : "/") + path
        }
        let queries = [baseQuery, query].compactMap { $0 }
        if !queries.isEmpty { copy.target += "?" + queries.joined(separator: "&") }
        return copy
    }

    /// The path, and what stands behind the question mark if there is one.
    private static func parts(_ target: String) -> (path: Substring, query: Substring?) {
        guard let mark = target.utf8.firstIndex(of: UInt8(ascii: "?")) else {
            return (target[...], nil)
        }
        return (target[..<mark], target[target.index(after: mark)...])
    }

    /// Whether both have the same scheme, host and port (RFC 6454, 5).
    func hasSameOrigin(as other: HTTPTarget) -> Bool {
        address.hasSameOrigin(as: other.address)
    }

    /// Where a `Location` leads (RFC 9110, 10.2.2), which may be relative to this target.
    /// - Throws: `protocolViolation` for what is no such place, which is the server's fault, `unsupported` for another scheme.
    func redirected(to location: String) throws(WaybillError) -> HTTPTarget {
        let base = "\(address.scheme.name)://\(address.hostField)\(target)"
        guard let url = URL(string: location, relativeTo: URL(string: base))?.absoluteURL,
            url.host() != nil
        else { throw Self.noPlace(nil) }
        // The fragment is the browser's affair.
        var text = url.absoluteString
        if let fragment = text.utf8.firstIndex(of: UInt8(ascii: "#")) {
            text = String(Substring(text.utf8[..<fragment]))
        }
        var target: HTTPTarget
        do throws(WaybillError) {
            target = try HTTPTarget(try ServiceAddress.url(text))
        } catch {
            throw error.code == .unsupported ? error : Self.noPlace(error)
        }
        // The same host, whose zone only this side knows (RFC 6874, 4).
        if target.address.scheme == address.scheme, target.address.endpoint != address.endpoint,
            target.address.hostField == address.hostField
        {
            target.address = try target.address.moved(to: address.endpoint.description)
        }
        return target
    }

    /// A `Location` that is no URL to go to.
    private static func noPlace(_ error: WaybillError?) -> WaybillError {
        let message = "the server redirects to a location that is not a URL with a host"
        return WaybillError(.protocolViolation, message, underlying: error)
    }
}
