package import HTTPWire
import WireCore

/// A proxy that opens tunnels by HTTP CONNECT, and the fields of the request.
package struct ProxySettings: Hashable, Sendable {
    package var endpoint: Endpoint
    /// The fields of the request besides `Host`, including credentials.
    package var headers: HTTPHeaders
    /// The hosts that are reached without the proxy: exact names, or a dot and a domain for all names below it.
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

    /// A host in lower case without the dot of the root (RFC 1034, 3.1).
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
    /// The address of the proxy; never the fields of the request.
    package var description: String { endpoint.description }
}
