#if canImport(Network)
    import Dispatch
    import Network
    import Security

    /// The TLS options of Network.framework for settings of the link.
    struct NetworkSecurity {
        let options: NWProtocolTLS.Options
        /// Verifies the peer, and stores the reason of a refusal.
        let trust: ServerTrust

        /// Reads the files in the settings and converts the settings.
        ///
        /// - Parameters:
        ///   - settings: The settings.
        ///   - host: The host of the connection.
        /// - Throws: `LinkError.tls` with `invalidSettings`.
        init(_ settings: TLSSettings, host: String) throws(LinkError) {
            var authorities: [[UInt8]] = []
            for material in settings.authorities {
                guard let found = PEMDocument.certificates(in: try material.bytes()) else {
                    throw .tls(.invalidSettings("\(material) as an authority is no certificate"))
                }
                authorities += found
            }
            let name = try ServerName(settings.serverName ?? host)
            trust = ServerTrust(settings, authorities: authorities, name: name.text)
            options = NWProtocolTLS.Options()
            let security = options.securityProtocolOptions
            sec_protocol_options_set_min_tls_protocol_version(
                security,
                settings.minimumVersion.ofNetwork
            )
            // On resumption the peer is not verified again, and the session may come from a connection with other
            // authorities or without verification.
            sec_protocol_options_set_tls_resumption_enabled(security, false)
            sec_protocol_options_set_tls_renegotiation_enabled(security, false)
            // An address must not be sent as the server name (RFC 6066, 3).
            if !name.isAddress {
                sec_protocol_options_set_tls_server_name(security, name.text)
            }
            for name in settings.applicationProtocols {
                sec_protocol_options_add_tls_application_protocol(security, name)
            }
            if let identity = settings.identity {
                let own = try NetworkIdentity.make(identity)
                sec_protocol_options_set_local_identity(security, own)
            }
            // The evaluation blocks, so it runs on a separate queue.
            let verify = Self.verification(by: trust)
            let queue = DispatchQueue(label: "waybill.trust")
            sec_protocol_options_set_verify_block(security, verify, queue)
        }

        private static func verification(by trust: ServerTrust) -> sec_protocol_verify_t {
            { _, peer, complete in
                complete(trust.accepts(sec_trust_copy_ref(peer).takeRetainedValue()))
            }
        }
    }

    extension TLSSettings.Version {
        var ofNetwork: tls_protocol_version_t {
            switch self {
            case .v1_2: .TLSv12
            case .v1_3: .TLSv13
            }
        }
    }
#endif
