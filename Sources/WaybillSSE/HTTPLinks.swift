import Waybill
import WaybillLink
import WaybillSession

/// What opens connections to origins, secure ones and others: a redirect may lead from one to the other.
struct HTTPLinks: Sendable {
    /// Without TLS.
    let plain: LinkEnvironment
    private let secure: LinkEnvironment

    /// - Throws: `invalidEntry` for TLS options that cannot be.
    init(
        _ environment: LinkEnvironment,
        _ configuration: SSEConfiguration
    ) throws(WaybillError) {
        plain = environment
        secure = try environment.secured(for: HTTPTarget.secureScheme, by: configuration.tls)
    }

    /// Connects to the origin of a target; see `LinkEnvironment.open(_:within:)`.
    func open(_ target: HTTPTarget, within timeout: Duration) async throws -> OpenedLink {
        let environment = target.address.scheme.isSecure ? secure : plain
        return try await environment.open(target.address.endpoint, within: timeout)
    }
}
