#if canImport(Network)
    import Network
    import Security

    extension TLSAgreement {
        /// Reads the TLS properties of a connection; nil without TLS, or before it is ready.
        init?(of connection: NWConnection) {
            let metadata = connection.metadata(definition: NWProtocolTLS.definition)
            guard let metadata = metadata as? NWProtocolTLS.Metadata else { return nil }
            let security = metadata.securityProtocolMetadata
            let version =
                switch sec_protocol_metadata_get_negotiated_tls_protocol_version(security) {
                case .TLSv12: "TLSv1.2"
                case .TLSv13: "TLSv1.3"
                default: ""
                }
            // Valid as long as `security`.
            let chosen = sec_protocol_metadata_get_negotiated_protocol(security).map {
                String(cString: $0)
            }
            // Sessions are never resumed here; see `NetworkSecurity`.
            self.init(version: version, applicationProtocol: chosen, isResumed: false)
        }
    }
#endif
