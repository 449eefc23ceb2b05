package import Waybill
package import WaybillLink
import WireCore

/// A stream to the peer and its clock, with what is left of the time to make a session over them.
package struct OpenedLink: Sendable {
    /// Connected and not yet started.
    package let stream: any ByteStream
    /// The clock; whoever takes the link invalidates it.
    package let timers: any TimerSource
    /// What is left of the time that was given, never less than zero.
    package let timeLeft: Duration
    /// Where it leads to.
    package let endpoint: Endpoint

    /// How the stream is secured; nil when it is not.
    package var tls: NegotiatedTLS? {
        stream.tls.map { agreement in
            NegotiatedTLS(
                version: agreement.version,
                applicationProtocol: agreement.applicationProtocol,
                isResumed: agreement.isResumed
            )
        }
    }
}

extension LinkEnvironment {
    /// The same environment with TLS on what it opens, where the scheme says so.
    ///
    /// - Parameters:
    ///   - scheme: The scheme of the address; within HTTP, `http/1.1` is offered unless the app offers others.
    ///   - options: What the app has asked for.
    /// - Returns: The environment.
    /// - Throws: `invalidEntry` for options that cannot be.
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
    ///   - endpoint: Where to.
    ///   - timeout: How long it may take, with all that follows until the peer has accepted.
    /// - Returns: The stream, the clock and what is left of the time.
    /// - Throws: `WaybillError`: `connectionRefused`, `timedOut`, `unsupported`; `CancellationError` when
    ///   the task was cancelled. Nothing is left open then.
    package func open(_ endpoint: Endpoint, within timeout: Duration) async throws -> OpenedLink {
        let timers: any TimerSource
        do {
            timers = try makeTimers()
        } catch {
            throw WaybillError(error)
        }
        let begin = timers.now
        do throws(LinkError) {
            let stream = try await dialer.dial(endpoint, timeout: timeout, timers: timers)
            let timeLeft = max(timeout - begin.duration(to: timers.now), .zero)
            return OpenedLink(
                stream: stream,
                timers: timers,
                timeLeft: timeLeft,
                endpoint: endpoint
            )
        } catch {
            timers.invalidate()
            if case .cancelled = error { throw CancellationError() }
            throw WaybillError(error)
        }
    }
}
