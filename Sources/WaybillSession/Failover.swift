import HTTPWire
package import Waybill
package import WaybillLink
import WireCore

/// The hosts of a service, and the order in which they are tried.
package struct Failover: Sendable {
    /// One host, with its address and dialer.
    package struct Route: Sendable {
        /// The address of the URL, with this host.
        package let address: ServiceAddress
        /// The environment that opens streams to the host.
        package let environment: LinkEnvironment

        /// Connects; see ``LinkEnvironment/open(_:within:)``.
        ///
        /// - Parameters:
        ///   - timeout: The limit for the whole connect.
        ///   - headers: Further header fields of the WebSocket's upgrade request.
        /// - Returns: The stream, the clock and the remaining time.
        /// - Throws: The errors of that function; `unsupported` for headers without an upgrade request.
        package func open(
            within timeout: Duration,
            requesting headers: Headers = [:]
        ) async throws -> OpenedLink {
            guard !headers.isEmpty else {
                return try await environment.open(address.endpoint, within: timeout)
            }
            guard let dialer = environment.dialer.requesting(HTTPHeaders(headers)) else {
                var error = WaybillError(
                    .unsupported,
                    "there is no HTTP request that the headers of the credentials could go with"
                )
                error.unsupportedOption = .upgradeHeaders
                throw error
            }
            var environment = environment
            environment.dialer = dialer
            return try await environment.open(address.endpoint, within: timeout)
        }
    }

    /// The endpoint of the host that has redirected its clients.
    private final class Avoided: Sendable {
        let endpoint = Locked<Endpoint?>(nil)
    }

    /// The routes, with that of the URL first.
    package let routes: [Route]
    private let order: FailoverOptions.Order
    private let avoided = Avoided()
    private let random: @Sendable () -> UInt64

    /// - Parameters:
    ///   - address: The address of the URL.
    ///   - options: The other hosts.
    ///   - environment: Provides random numbers.
    ///   - prepare: Returns the environment that opens streams to an address.
    /// - Throws: `invalidEntry` for an invalid host; the errors of `prepare`.
    package init(
        _ address: ServiceAddress,
        _ options: FailoverOptions,
        in environment: LinkEnvironment,
        prepare: (ServiceAddress) throws(WaybillError) -> LinkEnvironment
    ) throws(WaybillError) {
        var routes = [Route(address: address, environment: try prepare(address))]
        for host in options.hosts {
            let other = try address.moved(to: host)
            // A second attempt at the same host would only take more time.
            guard !routes.contains(where: { $0.address.endpoint == other.endpoint }) else {
                continue
            }
            routes.append(Route(address: other, environment: try prepare(other)))
        }
        self.routes = routes
        order = options.order
        random = environment.random
    }

    /// Returns the routes in the order of one connect, with the avoided one last.
    package func arranged() -> [Route] {
        var routes = routes
        guard routes.count > 1 else { return routes }
        if order == .shuffled {
            // The shuffle of Fisher and Yates. The bias of a remainder of 64 bits is negligible.
            for last in (1..<routes.count).reversed() {
                routes.swapAt(last, Int(random() % UInt64(last + 1)))
            }
        }
        guard let endpoint = avoided.endpoint.withLock({ $0 }),
            let index = routes.firstIndex(where: { $0.address.endpoint == endpoint })
        else { return routes }
        routes.append(routes.remove(at: index))
        return routes
    }

    /// Notes that a host has redirected its clients.
    ///
    /// The other hosts come first from now on.
    ///
    /// - Returns: Whether there are other hosts.
    package func avoid(_ route: Route) -> Bool {
        guard routes.count > 1 else { return false }
        avoided.endpoint.withLock { $0 = route.address.endpoint }
        return true
    }

    /// Tries the routes in order until one succeeds.
    ///
    /// - Parameter body: The attempt with one route.
    /// - Returns: The result of the first success.
    /// - Throws: An error of `body` that cannot be specific to one host; `WaybillError` with a `FailoverFailure` if all
    ///   routes have failed; with a single route its error.
    package func first<Result: Sendable>(
        _ body: (Route) async throws -> Result
    ) async throws -> Result {
        let routes = arranged()
        var attempts: [FailoverFailure.Attempt] = []
        for route in routes {
            do { return try await body(route) } catch let error as WaybillError {
                guard routes.count > 1, error.mayBeOneHostsOwn else { throw error }
                attempts.append(.init(host: route.address.endpoint.description, error: error))
            }
            try Task.checkCancellation()
        }
        throw WaybillError(FailoverFailure(attempts: attempts))
    }
}

extension WaybillError {
    /// Whether the error may be specific to one host, so that another host of the service may succeed.
    package var mayBeOneHostsOwn: Bool {
        // Errors of this side are the same with every host.
        if let reason = (underlying as? TLSFailure)?.reason {
            return reason != .libraryMissing && reason != .invalidOptions
        }
        return [.connectionRefused, .connectionLost, .timedOut, .tls, .protocolViolation]
            .contains(code)
    }

    /// The error for a connect in which every host has failed.
    package init(_ failure: FailoverFailure) {
        let errors = failure.attempts.map(\.error)
        let telling = errors.last(where: \.isRetryable) ?? errors.last
        self.init(
            telling?.code ?? .connectionRefused,
            "no host could be connected to: \(failure)",
            peerReason: telling?.peerReason,
            underlying: failure
        )
    }
}
