import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A proxy through which a transport connects: it is asked for a tunnel by HTTP CONNECT (RFC 9110, 9.3.6), for
/// plain and secure connections alike.
///
/// TLS runs within the tunnel, so that the proxy sees nothing of it but the host's name, which the proxy
/// resolves. Between this side and the proxy there is none. Apple's platforms know the proxies of the system's
/// settings by themselves; there, one of these serves connections without TLS only, and with TLS a connect fails
/// with `unsupported`.
///
/// A proxy that refuses fails the connect with an ``HTTPRefusal`` as `underlying` that says so
/// (``HTTPRefusal/isFromProxy``): `unauthorized` for its 407 (and 401 and 403), `connectionRefused` for 408, 425,
/// 429 and 5xx, with which it says that it cannot reach the host, and `rejected` for the rest. It shares the connect
/// timeout with all that follows.
public struct ProxyOptions: Hashable, Sendable {
    /// The proxy's name or address.
    public var host: String
    /// Its port, 1 to 65,535.
    public var port: Int
    /// The user for Basic authentication (RFC 7617), without a colon; nil, the default, for none.
    ///
    /// Sent with every request for a tunnel, unencrypted.
    public var userName: String?
    /// The password.
    ///
    /// Never logged.
    public var password: String?
    /// Further fields of the request for a tunnel; one with `Proxy-Authorization` wins over user and password.
    ///
    /// Values are never logged. The server sees none of them.
    public var headers: Headers
    /// The hosts that are reached without the proxy; none by default, not even this machine.
    ///
    /// Exactly the name or address given; with a dot in front, as in `.example.com`, all names below it.
    public var exemptHosts: [String]

    /// Describes a proxy.
    ///
    /// - Parameters:
    ///   - host: The proxy's name or address.
    ///   - port: Its port.
    ///   - userName: The user, where the proxy wants one.
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

    /// Describes a proxy as the variable `http_proxy` does, which is not read by itself.
    ///
    /// - Parameter url: `http://user:password@host:port`, the port being 80 unless it is named.
    /// - Throws: `unsupported` for another scheme, `invalidEntry` for what is no such URL.
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
    /// Host and port; never what is told to the proxy.
    public var description: String {
        host.utf8.contains(UInt8(ascii: ":")) && !host.hasBytePrefix("[")
            ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
