#if canImport(Network)
    import Dispatch
    import Network
    import WireCore

    /// Connects with Network.framework, which resolves names, races addresses, and supports proxies and VPNs.
    package struct NetworkDialer: Dialer {
        private let settings: TLSSettings?

        package init() {
            settings = nil
        }

        private init(settings: TLSSettings) {
            self.settings = settings
        }

        package func secured(by settings: TLSSettings) -> any Dialer {
            NetworkDialer(settings: settings)
        }

        package func dial(
            _ endpoint: Endpoint,
            timeout: Duration,
            timers: any TimerSource
        ) async throws(LinkError) -> any ByteStream {
            let attempt = try makeAttempt(endpoint)
            let deadline = timers.now.advanced(by: timeout)
            let timer = timers.scheduleTimer(at: deadline) { attempt.fail(.timedOut) }
            defer { timers.cancelTimer(timer) }
            return try await attempt.stream()
        }

        private func makeAttempt(
            _ endpoint: Endpoint
        ) throws(LinkError) -> NetworkConnectAttempt<FrameworkConnection> {
            guard let port = NWEndpoint.Port(rawValue: endpoint.port) else {
                throw .system(errorNumber: 0, call: "NWEndpoint.Port")
            }
            let tcp = NWProtocolTCP.Options()
            tcp.noDelay = true
            // Detects a dead peer within two minutes, also where no protocol sends heart-beats: probes after a minute
            // of silence, four of them at intervals of 15 seconds.
            tcp.enableKeepalive = true
            tcp.keepaliveIdle = 60
            tcp.keepaliveInterval = 15
            tcp.keepaliveCount = 4
            let security: NetworkSecurity? =
                if let settings { try NetworkSecurity(settings, host: endpoint.host) } else { nil }
            let connection = NWConnection(
                host: NWEndpoint.Host(endpoint.host),
                port: port,
                using: NWParameters(tls: security?.options, tcp: tcp)
            )
            let peer = NetworkPeer(
                host: endpoint.host,
                showsIdentity: settings?.identity != nil,
                requiresTLS1_3: settings?.minimumVersion == .v1_3
            )
            return NetworkConnectAttempt(
                FrameworkConnection(connection, to: peer, trust: security?.trust)
            )
        }
    }
#endif
