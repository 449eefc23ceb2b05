package import HTTPWire

/// The destination of a connection.
package struct Endpoint: Hashable, Sendable, CustomStringConvertible {
    /// A name, or an IPv4 or IPv6 address without brackets.
    package var host: String
    /// The TCP port, 1 to 65,535.
    package var port: UInt16

    package init(host: String, port: UInt16) {
        self.host = host
        self.port = port
    }

    package var description: String {
        host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// The host as shown to peers: an IPv6 address in brackets without its zone, which is local to this machine (RFC
    /// 6874, 4).
    package var publicHost: String {
        guard host.utf8.contains(UInt8(ascii: ":")) else { return host }
        return "[\(Substring(host.utf8.prefix { $0 != UInt8(ascii: "%") }))]"
    }
}

/// Opens streams: the system's TCP in production, a pair or a script in tests.
package protocol Dialer: Sendable {
    /// Connects to the endpoint.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint.
    ///   - timeout: The time limit for resolving the name and trying all its addresses.
    ///   - timers: The clock of the timeout.
    /// - Returns: A connected stream that is not started.
    /// - Throws: `LinkError`; `LinkError.cancelled` if the task was cancelled.
    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream

    /// The same dialer with TLS.
    ///
    /// - Parameter settings: The settings; without a server name, the host of each endpoint is used.
    /// - Returns: A dialer whose streams are secure, with a verified peer.
    func secured(by settings: TLSSettings) -> any Dialer

    /// The same dialer through a proxy, to which it connects in place of each endpoint.
    ///
    /// - Parameter settings: The proxy.
    /// - Returns: A dialer whose streams are tunnels; add TLS after this call, not before.
    func proxied(by settings: ProxySettings) -> any Dialer

    /// The same dialer with further fields in its opening request.
    ///
    /// - Parameter headers: The fields; they replace fields of the same names.
    /// - Returns: A dialer; nil if there is no request that could have fields.
    func requesting(_ headers: HTTPHeaders) -> (any Dialer)?
}

extension Dialer {
    package func secured(by settings: TLSSettings) -> any Dialer {
        #if os(Linux)
            TLSDialer(base: self, settings: settings)
        #else
            UnavailableDialer(what: "TLS")
        #endif
    }

    package func proxied(by settings: ProxySettings) -> any Dialer {
        ProxyDialer(base: self, settings: settings)
    }

    package func requesting(_ headers: HTTPHeaders) -> (any Dialer)? { nil }
}

/// The dialer of a platform that has none.
struct UnavailableDialer: Dialer {
    let what: String

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        throw .unsupported(what)
    }
}
