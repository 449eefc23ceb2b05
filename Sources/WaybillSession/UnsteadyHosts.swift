package import WaybillLink

/// The hosts whose latest connection ended too soon: a value.
///
/// A cluster's node can accept a connection and end it a moment later, again and again. Such a host comes last in the
/// next connect, behind those that failed before it. So all hosts take turns while none of them is healthy. The end of
/// a healthy connection forgets all of it, and the next connect begins with the first host again.
package struct UnsteadyHosts: Sendable {
    /// The hosts, with the one that ended a connection last at the end.
    private var endpoints: [Endpoint] = []

    package init() {}

    /// Notes the end of a connection.
    ///
    /// - Parameters:
    ///   - endpoint: The host.
    ///   - wasHealthy: Whether the connection has lasted ``ReconnectionPolicy/healthyTime``.
    package mutating func noteEnd(of endpoint: Endpoint, wasHealthy: Bool) {
        guard !wasHealthy else {
            endpoints = []
            return
        }
        endpoints.removeAll { $0 == endpoint }
        endpoints.append(endpoint)
    }

    /// Returns the same hosts, with those that are noted here last, in the order in which they were noted.
    package func last<Host>(in hosts: [Host], _ endpoint: (Host) -> Endpoint) -> [Host] {
        guard !endpoints.isEmpty else { return hosts }
        let noted = endpoints.flatMap { noted in hosts.filter { endpoint($0) == noted } }
        return hosts.filter { !endpoints.contains(endpoint($0)) } + noted
    }
}
