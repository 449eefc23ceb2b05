import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// An HTTP proxy through which a transport connects.
///
/// The transport asks it for a tunnel by HTTP CONNECT (RFC 9110, 9.3.6), for plain and secure connections alike.
///
/// TLS runs inside the tunnel, so the proxy sees only the host's name, which it resolves. The connection to the proxy
/// itself is plain. Apple's platforms use the proxies of the system's settings by themselves. There, a proxy given here
/// serves only connections without TLS; with TLS a connect fails with `unsupported`.
///
/// When a proxy refuses, the connect fails with an ``HTTPRefusal`` as `underlying` (``HTTPRefusal/isFromProxy``). The
/// code is `unauthorized` for 407, 401 and 403. It is `connectionRefused` for 408, 425, 429 and 5xx, which mean that
/// the proxy cannot reach the host. It is `rejected` for the rest. The tunnel counts towards the connect timeout.
public struct ProxyOptions: Hashable, Sendable {
    /// The proxy's name or address.
    public var host: String
    /// The proxy's port, 1 to 65,535.
    public var port: Int
    /// The user name for Basic authentication (RFC 7617), without a colon; nil, the default, for none.
    ///
    /// It is sent unencrypted with every request for a tunnel.
    public var userName: String?
    /// The password.
    ///
    /// It is never logged.
    public var password: String?
    /// Further fields of the request for a tunnel; a `Proxy-Authorization` replaces user name and password.
    ///
    /// Values are never logged. The server receives none of them.
    public var headers: Headers
    /// The hosts that are reached without the proxy; none by default, not even this machine.
    ///
    /// Each is an exact name or address, or a dot and a domain, such as `.example.com`, for all names below it.
    public var exemptHosts: [String]

    /// Describes a proxy.
    ///
    /// - Parameters:
    ///   - host: The proxy's name or address.
    ///   - port: The proxy's port.
    ///   - userName: The user name, if the proxy requires one.
    ///   - password: The password.
    ///   - headers: Further fields of the request for a tunnel.
    ///   - exemptHosts: The hosts that are reached without the proxy.
    public init(
        host: String,
        port: Int,
        userName: String? = nil,
        password: String? = nil,
        headers: Headers = [:],
        exemptHosts: [String] = []
    ) {
        self.host = host
        self.port = port
        self.userName = userName
        self.password = password
        self.headers = headers
        self.exemptHosts = exemptHosts
    }

    /// Describes a proxy by a URL, in the form of the variable `http_proxy`; the variable itself is not read.
    ///
    /// - Parameter url: `http://user:password@host:port`; the default port is 80.
    /// - Throws: `unsupported` for another scheme; `invalidEntry` for an invalid URL.
    public init(url: String) throws(WaybillError) {
        guard let parsed = URL(string: url), let host = parsed.host(percentEncoded: false),
            !host.isEmpty
        else { throw WaybillError(.invalidEntry, "this is not a proxy's URL") }
        guard parsed.scheme?.asciiLowercased == "http" else {
            throw WaybillError(.unsupported, "a proxy has a URL with http")
        }
        guard ["", "/"].contains(parsed.path()) else {
            throw WaybillError(.invalidEntry, "a proxy's URL has no path")
        }
        self.init(
            host: host,
            port: parsed.port ?? 80,
            userName: parsed.user(percentEncoded: false),
            password: parsed.password(percentEncoded: false)
        )
    }
}

extension ProxyOptions: CustomStringConvertible {
    /// Host and port; never credentials or headers.
    public var description: String {
        host.utf8.contains(UInt8(ascii: ":")) && !host.hasBytePrefix("[")
            ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
