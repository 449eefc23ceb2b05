package import HTTPWire

/// Where to connect to.
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

    /// The host as others may be told of it: an IPv6 address in brackets and without its zone, which means
    /// something on this machine only (RFC 6874, 4).
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
    ///   - endpoint: Where to.
    ///   - timeout: How long resolving the name and trying its addresses may take in all.
    ///   - timers: The clock that the timeout is measured by.
    /// - Returns: A stream that is connected and not yet started.
    /// - Throws: `LinkError`; `LinkError.cancelled` when the task was cancelled.
    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream

    /// The same dialer with TLS on what it opens.
    ///
    /// - Parameter settings: How; the host of each endpoint is the name, unless they have another.
    /// - Returns: A dialer whose streams are secure, and the peer verified, once they are there.
    func secured(by settings: TLSSettings) -> any Dialer

    /// The same dialer through a proxy, which is connected to instead of each endpoint.
    ///
    /// - Parameter settings: The proxy.
    /// - Returns: A dialer whose streams are tunnels; to be secured afterwards, not before.
    func proxied(by settings: ProxySettings) -> any Dialer

    /// The same dialer with further fields in the request that opens what it dials.
    ///
    /// - Parameter headers: The fields, in the place of those of the same name.
    /// - Returns: A dialer; nil where nothing is requested that could have fields.
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

/// Stands where a platform has no dialer.
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
