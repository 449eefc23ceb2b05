package import Waybill
package import WaybillLink
import WireCore

/// A stream to the peer with its clock, and the time that remains to make a connection over it.
package struct OpenedLink: Sendable {
    /// Connected and not yet started.
    package let stream: any ByteStream
    /// The clock.
    package let timers: any TimerSource
    /// The remaining part of the connect timeout, never negative.
    package let timeLeft: Duration
    /// The endpoint of the peer.
    package let endpoint: Endpoint

    /// The result of the TLS handshake; nil without TLS.
    package var tls: NegotiatedTLS? { stream.negotiatedTLS }
}

extension ByteStream {
    /// The result of the TLS handshake; nil without TLS.
    package var negotiatedTLS: NegotiatedTLS? {
        tls.map { agreement in
            NegotiatedTLS(
                version: agreement.version,
                applicationProtocol: agreement.applicationProtocol,
                isResumed: agreement.isResumed
            )
        }
    }
}

extension LinkEnvironment {
    /// Returns the same environment with TLS on its streams, if the scheme demands TLS.
    ///
    /// - Parameters:
    ///   - scheme: The scheme of the address; for HTTP, `http/1.1` is offered unless the app offers other protocols.
    ///   - options: The app's TLS options.
    /// - Returns: The environment.
    /// - Throws: `invalidEntry` for invalid options.
    package func secured(
        for scheme: ServiceAddress.Scheme,
        by options: TLSOptions
    ) throws(WaybillError) -> LinkEnvironment {
        guard scheme.isSecure else { return self }
        var copy = self
        let protocols = scheme.hasPath ? ["http/1.1"] : []
        copy.dialer = dialer.secured(by: try TLSSettings(options, protocols: protocols))
        return copy
    }

    /// Connects to an endpoint.
    ///
    /// - Parameters:
    ///   - endpoint: The endpoint.
    ///   - timeout: The limit for the whole connect, until the peer has accepted the greeting.
    /// - Returns: The stream, the clock and the remaining time.
    /// - Throws: `WaybillError`: `connectionRefused`, `timedOut`, `unsupported`; `CancellationError` if
    ///   the task was cancelled. No stream is left open then.
    package func open(_ endpoint: Endpoint, within timeout: Duration) async throws -> OpenedLink {
        let begin = clock.now
        do throws(LinkError) {
            let stream = try await dialer.dial(endpoint, timeout: timeout, timers: clock)
            let timeLeft = max(timeout - begin.duration(to: clock.now), .zero)
            return OpenedLink(
                stream: stream,
                timers: clock,
                timeLeft: timeLeft,
                endpoint: endpoint
            )
        } catch {
            if case .cancelled = error { throw CancellationError() }
            throw WaybillError(error).naming(endpoint)
        }
    }
}
