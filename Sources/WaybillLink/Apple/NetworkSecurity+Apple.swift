#if canImport(Network)
    import Dispatch
    import Network
    import Security

    /// TLS settings in the words of Network.framework: option by option.
    struct NetworkSecurity {
        /// What a connection is to be made with.
        let options: NWProtocolTLS.Options
        /// Who decides on the peer, and knows why it was refused.
        let trust: ServerTrust

        /// Reads what the settings name, and maps them.
        ///
        /// - Parameters:
        ///   - settings: What is asked for.
        ///   - host: Whom the connection is to.
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
            // A session that is resumed is one whose peer is not looked at again: and it may have been begun by
            // somebody who trusts other authorities, or anybody.
            sec_protocol_options_set_tls_resumption_enabled(security, false)
            sec_protocol_options_set_tls_renegotiation_enabled(security, false)
            // An address is not to be asked for (RFC 6066, 3).
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
            // Evaluating blocks, so it has a queue of its own.
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
        /// The same version.
        var ofNetwork: tls_protocol_version_t {
            switch self {
            case .v1_2: .TLSv12
            case .v1_3: .TLSv13
            }
        }
    }
#endif
