import HTTPWire
import WireCore

/// Connects to a proxy through another dialer and opens a tunnel to each endpoint (RFC 9110, 9.3.6).
///
/// The proxy resolves the names. TLS with the endpoint is added around this dialer, not below it.
package struct ProxyDialer: Dialer {
    private let base: any Dialer
    private let settings: ProxySettings

    /// - Parameters:
    ///   - base: The dialer for connections to the proxy.
    ///   - settings: The proxy.
    package init(base: any Dialer, settings: ProxySettings) {
        self.base = base
        self.settings = settings
    }

    package func secured(by settings: TLSSettings) -> any Dialer {
        #if os(Linux)
            TLSDialer(base: self, settings: settings)
        #else
            // There the streams below include TLS, which would be TLS with the proxy.
            UnavailableDialer(what: "TLS through a proxy that is configured")
        #endif
    }

    package func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        guard !settings.exempts(endpoint.host) else {
            return try await base.dial(endpoint, timeout: timeout, timers: timers)
        }
        let handshake: HTTPTunnelHandshake
        do throws(HTTPEncodingError) {
            handshake = try HTTPTunnelHandshake(
                to: "\(endpoint.publicHost):\(endpoint.port)",
                headers: settings.headers
            )
        } catch {
            throw .proxyInvalid(error)
        }
        let deadline = timers.now.advanced(by: timeout)
        do throws(LinkError) {
            let stream = try await base.dial(settings.endpoint, timeout: timeout, timers: timers)
            let tunnel = ProxyTunnel(handshake, by: deadline)
            return try await LayerStream(over: stream, tunnel, timers: timers).opened()
        } catch {
            throw error.byProxy
        }
    }
}

extension LinkError {
    /// The same error, marked as one of the way to a proxy.
    fileprivate var byProxy: LinkError {
        switch self {
        case .cancelled, .proxyRefused, .proxyViolation, .proxyInvalid: self
        default: .proxy(self)
        }
    }
}
