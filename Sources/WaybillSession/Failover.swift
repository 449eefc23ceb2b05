import HTTPWire
package import Waybill
package import WaybillLink
import WireCore

/// The hosts of a service, and the order in which they are tried.
package struct Failover: Sendable {
    /// One host, and how it is reached.
    package struct Route: Sendable {
        /// The address: that of the URL, with this host.
        package let address: ServiceAddress
        /// What connects to it.
        package let environment: LinkEnvironment

        /// Connects; see ``LinkEnvironment/open(_:within:)``.
        ///
        /// - Parameters:
        ///   - timeout: How long it may take.
        ///   - headers: Further fields of the request for a WebSocket.
        /// - Returns: The stream, the clock and what is left of the time.
        /// - Throws: As there; `unsupported` when there is no such request.
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

    /// The host that has sent its clients elsewhere.
    private final class Avoided: Sendable {
        let endpoint = Locked<Endpoint?>(nil)
    }

    /// The routes, that of the URL first.
    package let routes: [Route]
    private let order: FailoverOptions.Order
    private let avoided = Avoided()
    private let random: @Sendable () -> UInt64

    /// - Parameters:
    ///   - address: The address of the URL.
    ///   - options: The other hosts.
    ///   - environment: Where the dice come from.
    ///   - prepare: What connects to an address.
    /// - Throws: `invalidEntry` for a host that cannot be; what `prepare` throws.
    package init(
        _ address: ServiceAddress,
        _ options: FailoverOptions,
        in environment: LinkEnvironment,
        prepare: (ServiceAddress) throws(WaybillError) -> LinkEnvironment
    ) throws(WaybillError) {
        var routes = [Route(address: address, environment: try prepare(address))]
        for host in options.hosts {
            let other = try address.moved(to: host)
            // Twice the same would only take twice the time.
            guard !routes.contains(where: { $0.address.endpoint == other.endpoint }) else {
                continue
            }
            routes.append(Route(address: other, environment: try prepare(other)))
        }
        self.routes = routes
        order = options.order
        random = environment.random
    }

    /// The routes in the order of one connect; one that is avoided comes last.
    package func arranged() -> [Route] {
        var routes = routes
        guard routes.count > 1 else { return routes }
        if order == .shuffled {
            // Fisher and Yates. The remainder of 64 bits is as good as even.
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

    /// Notes that a host has sent its clients elsewhere: the others come first from now on.
    /// - Returns: Whether there are others.
    package func avoid(_ route: Route) -> Bool {
        guard routes.count > 1 else { return false }
        avoided.endpoint.withLock { $0 = route.address.endpoint }
        return true
    }

    /// Tries one route after another until one leads somewhere.
    ///
    /// - Parameter body: What is tried.
    /// - Returns: What the first that does not fail has returned.
    /// - Throws: What `body` has thrown and no other host can mend; when all have failed `WaybillError` with a
    ///   `FailoverFailure`; with a single route what it has thrown.
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
    /// Whether another host of the same service may do what this one has not.
    package var mayBeOneHostsOwn: Bool {
        // What this side lacks no host can give.
        if let reason = (underlying as? TLSFailure)?.reason {
            return reason != .libraryMissing && reason != .invalidOptions
        }
        return [.connectionRefused, .connectionLost, .timedOut, .tls, .protocolViolation]
            .contains(code)
    }

    /// That every host has failed.
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
