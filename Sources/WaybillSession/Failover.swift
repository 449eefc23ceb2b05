import HTTPWire
package import Waybill
package import WaybillLink
import WireCore

/// The hosts of a service, and the order in which they are tried.
package final class Failover: Sendable {
    /// One host, with its address and dialer.
    package final class Route: Sendable {
        /// The address of the URL, with this host.
        package let address: ServiceAddress
        /// The environment that opens streams to the host.
        package let environment: LinkEnvironment
        /// The host, and how it became known.
        package let candidate: ServerCandidate
        /// The address that one connection has stated, which led here; nil for the service's own hosts.
        let stated: ServiceAddress?

        init(
            address: ServiceAddress,
            environment: LinkEnvironment,
            candidate: ServerCandidate,
            stated: ServiceAddress? = nil
        ) {
            self.address = address
            self.environment = environment
            self.candidate = candidate
            self.stated = stated
        }

        /// The route to a configured host.
        convenience init(to address: ServiceAddress, environment: LinkEnvironment) {
            self.init(
                address: address,
                environment: environment,
                candidate: ServerCandidate(address.endpoint)
            )
        }

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
                error.option = .upgradeHeaders
                throw error
            }
            var environment = environment
            environment.dialer = dialer
            return try await environment.open(address.endpoint, within: timeout)
        }
    }

    /// What earlier connects and connections have shown of the hosts.
    private struct State: Sendable {
        /// The servers that other servers have referred to.
        var redirects: ServerRedirects
        /// The hosts whose connections ended too soon.
        var unsteady = UnsteadyHosts()
        /// The address that the last connection with one has stated, and the servers that were referred to from there.
        var visit: (address: ServiceAddress, redirects: ServerRedirects)?
    }

    /// The routes of the configured hosts, with that of the URL first.
    package let routes: [Route]
    private let order: FailoverOptions.Order
    private let state: Locked<State>
    private let clock: any TimerSource
    private let random: @Sendable () -> UInt64
    private let maximumHops: @Sendable (ServiceAddress) -> Int
    private let prepare: @Sendable (ServiceAddress) throws(WaybillError) -> LinkEnvironment

    /// - Parameters:
    ///   - address: The address of the URL.
    ///   - options: The other hosts.
    ///   - environment: Provides random numbers and the time.
    ///   - maximumHops: The number of references by servers to others that may follow each other, from an
    ///     address on; zero for none.
    ///   - prepare: Returns the environment that opens streams to an address.
    /// - Throws: `invalidEntry` for an invalid host; the errors of `prepare`.
    package init(
        _ address: ServiceAddress,
        _ options: FailoverOptions,
        in environment: LinkEnvironment,
        maximumHops: @escaping @Sendable (ServiceAddress) -> Int = { _ in 0 },
        prepare: @escaping @Sendable (ServiceAddress) throws(WaybillError) -> LinkEnvironment
    ) throws(WaybillError) {
        var routes = [Route(to: address, environment: try prepare(address))]
        for host in options.hosts {
            let other = try address.moved(to: host)
            // A second attempt at the same host would only take more time.
            guard !routes.contains(where: { $0.address.endpoint == other.endpoint }) else {
                continue
            }
            routes.append(Route(to: other, environment: try prepare(other)))
        }
        self.routes = routes
        order = options.order
        state = Locked(State(redirects: ServerRedirects(maximumHops: maximumHops(address))))
        clock = environment.clock
        random = environment.random
        self.maximumHops = maximumHops
        self.prepare = prepare
    }

    /// Returns the configured routes in the order of one connect.
    package func arranged() -> [Route] {
        var routes = routes
        guard routes.count > 1 else { return routes }
        if order == .shuffled {
            // The shuffle of Fisher and Yates. The bias of a remainder of 64 bits is negligible.
            for last in (1..<routes.count).reversed() {
                routes.swapAt(last, Int(random() % UInt64(last + 1)))
            }
        }
        return state.withLock { $0.unsteady.last(in: routes, \.address.endpoint) }
    }

    /// Notes that a server refers its clients to other servers.
    ///
    /// - Parameters:
    ///   - redirect: The reference.
    ///   - route: The route to the server that refers.
    /// - Returns: What follows, and whether the next connect begins with another server.
    package func note(
        _ redirect: ServerRedirect,
        by route: Route
    ) -> (outcome: RedirectOutcome, hasAlternatives: Bool) {
        let port = (route.stated ?? routes[0].address).endpoint.port
        let servers = redirect.servers.map { Endpoint(host: $0.name, port: $0.port ?? port) }
        let now = clock.now
        let outcome = withRedirects(from: route.stated) { redirects in
            redirects.note(
                servers,
                isPermanent: redirect.isPermanent,
                by: route.candidate,
                at: now
            )
        }
        let hosts = route.stated.map { [$0.endpoint] } ?? routes.map(\.address.endpoint)
        let isAlone = hosts.allSatisfy { $0 == route.address.endpoint }
        // A broken chain begins again, so that it has to wait.
        let hasAlternatives = outcome.failure == nil && (!isAlone || !outcome.candidates.isEmpty)
        return (outcome, hasAlternatives)
    }

    /// What is known of references from the service, or from an address that one connection has stated.
    ///
    /// References from another origin are forgotten.
    private func withRedirects<Result>(
        from stated: ServiceAddress?,
        _ body: (inout ServerRedirects) -> Result
    ) -> Result {
        state.withLock { state in
            guard let stated else { return body(&state.redirects) }
            var visit = (stated, ServerRedirects(maximumHops: maximumHops(stated)))
            if let last = state.visit, last.address.hasSameOrigin(as: stated) {
                visit.1 = last.redirects
            }
            defer { state.visit = visit }
            return body(&visit.1)
        }
    }

    /// The route to a server: a configured host, or one with the same scheme, path and options.
    private func route(
        to candidate: ServerCandidate,
        from stated: ServiceAddress?
    ) throws(WaybillError) -> Route {
        if let stated {
            let address = stated.referred(to: candidate.endpoint)
            return Route(
                address: address,
                environment: try prepare(address),
                candidate: candidate,
                stated: stated
            )
        }
        let known = routes.first { $0.address.endpoint == candidate.endpoint }
        if let known, known.candidate == candidate { return known }
        let address = routes[0].address.moved(to: candidate.endpoint)
        if let known {
            return Route(address: address, environment: known.environment, candidate: candidate)
        }
        return Route(address: address, environment: try prepare(address), candidate: candidate)
    }

    /// Notes the end of a connection to a host.
    ///
    /// A host that accepts connections and ends them at once would otherwise be the first choice each time.
    ///
    /// - Parameters:
    ///   - route: The host.
    ///   - step: The machine's answer to the end.
    ///   - cause: The cause; nil if this side ended the connection.
    func noteEnd<Connection>(
        of route: Route,
        _ step: ConnectionStep<Connection>,
        _ cause: WaybillError?
    ) {
        let endpoint = route.address.endpoint
        guard routes.count > 1, route.stated == nil, let wasHealthy = step.wasHealthy else {
            return
        }
        guard wasHealthy || cause?.mayBeOneHostsOwn == true else { return }
        // Only configured hosts: servers can refer to any number of others.
        guard wasHealthy || routes.contains(where: { $0.address.endpoint == endpoint }) else {
            return
        }
        state.withLock { $0.unsteady.noteEnd(of: endpoint, wasHealthy: wasHealthy) }
    }

    /// Tries the routes in order until one succeeds.
    ///
    /// A server may refer to others, which are tried next.
    ///
    /// - Parameters:
    ///   - isReconnection: Whether the attempt follows the loss of a connection.
    ///   - stated: The address that the connection states itself, which is tried alone; nil for the service's hosts.
    ///   - body: The attempt with one route.
    /// - Returns: The result of the first success.
    /// - Throws: An error of `body` that cannot be specific to one host; `WaybillError` with a `FailoverFailure` if all
    ///   routes have failed; with a single route its error.
    package func first<Result: Sendable>(
        isReconnection: Bool = false,
        at stated: ServiceAddress? = nil,
        _ body: (Route) async throws -> Result
    ) async throws -> Result {
        let hosts = stated.map { [$0.endpoint] } ?? arranged().map(\.address.endpoint)
        var course = withRedirects(from: stated) { redirects in
            redirects.begin(hosts, isReconnection: isReconnection)
        }
        var attempts: [FailoverFailure.Attempt] = []
        while let candidate = course.next() {
            do {
                let result = try await body(route(to: candidate, from: stated))
                let now = clock.now
                withRedirects(from: stated) { $0.accept(candidate, at: now) }
                return result
            } catch var error as WaybillError {
                let noted = withRedirects(from: stated) { redirects in
                    redirects.takeNoted(from: candidate.endpoint)
                }
                let outcome = noted.map { course.follow($0) }
                if let failure = outcome?.failure { error = error.ending(failure) }
                let mayGoOn = error.mayBeOneHostsOwn || outcome != nil
                guard course.hasAlternatives, mayGoOn else { throw error }
                attempts.append(.init(host: candidate.endpoint.description, error: error))
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
        if code == .unsupported { return isLimitOfServer }
        return [.connectionRefused, .connectionLost, .timedOut, .tls, .protocolViolation]
            .contains(code)
    }

    /// The error of a server whose reference to others ends a chain.
    package func ending(_ failure: String) -> WaybillError {
        // The next attempt begins a new chain, and must not follow at once.
        var error = WaybillError(
            code == .connectionLost ? .connectionLost : .connectionRefused,
            failure,
            topic: topic,
            command: command,
            attempt: attempt,
            peerReason: peerReason,
            underlying: underlying
        )
        error.isServerBusy = true
        return error
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
        wordlessRefusal = telling?.wordlessRefusal
    }
}
