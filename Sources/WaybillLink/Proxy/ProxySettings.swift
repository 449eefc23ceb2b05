package import HTTPWire
import WireCore

/// A proxy that makes tunnels by HTTP CONNECT, and what it is told.
package struct ProxySettings: Hashable, Sendable {
    /// Where the proxy is.
    package var endpoint: Endpoint
    /// The fields of the request beside `Host`, credentials among them.
    package var headers: HTTPHeaders
    /// The hosts that are reached without it: exactly these, or with a dot in front all below that name.
    package var exemptHosts: [String]

    package init(endpoint: Endpoint, headers: HTTPHeaders = [:], exemptHosts: [String] = []) {
        self.endpoint = endpoint
        self.headers = headers
        self.exemptHosts = exemptHosts
    }

    /// Whether a host is reached without the proxy; names are compared without regard to case.
    package func exempts(_ host: String) -> Bool {
        let host = Self.folded(host)
        return exemptHosts.contains { exempt in
            let exempt = Self.folded(exempt)
            return exempt.hasBytePrefix(".")
                ? host.hasByteSuffix(exempt) && host.utf8.count > exempt.utf8.count
                : host.hasSameBytes(as: exempt)
        }
    }

    /// Without the dot of the root (RFC 1034, 3.1) and in lower case.
    private static func folded(_ host: String) -> String {
        let host = host.asciiLowercased
        guard host.hasByteSuffix("."), host.utf8.count > 1 else { return host }
        return String(Substring(host.utf8.dropLast()))
    }

    /// The value of `Proxy-Authorization` for a user (RFC 7617, 2).
    package static func basicCredentials(userName: String, password: String) -> String {
        "Basic " + Base64.encode(Array("\(userName):\(password)".utf8))
    }
}

extension ProxySettings: CustomStringConvertible {
    /// Where the proxy is; never what it is told.
    package var description: String { endpoint.description }
}
