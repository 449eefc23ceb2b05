package import HTTPWire

/// A proxy that makes tunnels by HTTP CONNECT, and what it is told.
package struct ProxySettings: Hashable, Sendable {
    /// Where the proxy is.
    package var endpoint: Endpoint
    /// The fields of the request beside `Host`, credentials among them.
    package var headers: HTTPHeaders

    package init(endpoint: Endpoint, headers: HTTPHeaders = [:]) {
        self.endpoint = endpoint
        self.headers = headers
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
