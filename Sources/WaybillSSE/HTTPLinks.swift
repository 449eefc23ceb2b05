import Waybill
import WaybillLink
import WaybillSession

/// What opens connections to origins, secure ones and others: a redirect may lead from one to the other.
struct HTTPLinks: Sendable {
    /// Without TLS.
    let plain: LinkEnvironment
    private let secure: LinkEnvironment
    /// The hosts that do as well as that of the base URL.
    private let failover: Failover
    /// The hosts of the service, and the rules for a URL that one request states.
    let addresses: ServiceAddresses

    /// - Throws: `invalidEntry` for options of TLS, of the proxy or for other hosts that cannot be.
    init(
        _ environment: LinkEnvironment,
        _ configuration: SSEConfiguration,
        base: HTTPTarget
    ) throws(WaybillError) {
        let plain = try environment.proxied(by: configuration.proxy)
        let secure = try plain.secured(for: HTTPTarget.secureScheme, by: configuration.tls)
        failover = try Failover(base.address, configuration.failover, in: environment) { address in
            address.scheme.isSecure ? secure : plain
        }
        addresses = HTTPTarget.addresses.knowing(failover.routes.map(\.address))
        self.plain = plain
        self.secure = secure
    }

    /// Connects to the origin of a target; see `LinkEnvironment.open(_:within:)`.
    func open(_ target: HTTPTarget, within timeout: Duration) async throws -> OpenedLink {
        let environment = target.address.scheme.isSecure ? secure : plain
        return try await environment.open(target.address.endpoint, within: timeout)
    }

    /// Tries the hosts that a request may be made to, one after another; see `Failover.first(_:)`.
    func first<Result: Sendable>(
        for plan: HTTPRequestPlan,
        _ body: (HTTPRequestPlan) async throws -> Result
    ) async throws -> Result {
        guard plan.isForAnyHost else { return try await body(plan) }
        return try await failover.first { route in
            var plan = plan
            plan.target.address = route.address
            return try await body(plan)
        }
    }

    /// The host whose connections a request counts among: those that stand in for one another count as one.
    func host(for plan: HTTPRequestPlan) -> HTTPTarget.Origin {
        let isOfService = failover.routes.contains {
            plan.target.address.hasSameOrigin(as: $0.address)
        }
        guard isOfService, let first = failover.routes.first else { return plan.target.origin }
        return HTTPTarget.Origin(first.address)
    }

    /// Whether a request may be made over a connection to the origin of a target.
    func canTake(_ plan: HTTPRequestPlan, to target: HTTPTarget) -> Bool {
        guard plan.isForAnyHost else { return target.hasSameOrigin(as: plan.target) }
        return failover.routes.contains { target.address.hasSameOrigin(as: $0.address) }
    }
}
