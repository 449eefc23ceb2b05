#if canImport(Network)
    import CoreFoundation
    import Darwin
    import Dispatch
    import Network
    import Security

    #if canImport(FoundationEssentials)
        import FoundationEssentials
    #else
        import Foundation
    #endif

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
                guard let found = PEMDocument.certificates(in: try material.read()) else {
                    throw .tls(.invalidSettings("an authority is not a certificate"))
                }
                authorities += found
            }
            let name = settings.serverName ?? host
            trust = ServerTrust(settings, authorities: authorities, name: name)
            options = NWProtocolTLS.Options()
            let security = options.securityProtocolOptions
            sec_protocol_options_set_min_tls_protocol_version(
                security,
                settings.minimumVersion.ofNetwork
            )
            // The host of the endpoint is asked for by itself; an address must not be (RFC 6066, 3).
            if settings.serverName != nil, IPv4Address(name) == nil, IPv6Address(name) == nil {
                sec_protocol_options_set_tls_server_name(security, name)
            }
            for name in settings.applicationProtocols {
                sec_protocol_options_add_tls_application_protocol(security, name)
            }
            if let identity = settings.identity {
                let own = try Self.identity(identity)
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

        private static func identity(
            _ identity: TLSSettings.Identity
        ) throws(LinkError) -> sec_identity_t {
            guard case .pkcs12(let material, let password) = identity else {
                throw .tls(
                    .invalidSettings(
                        "on Apple platforms a client's certificate and key are taken as PKCS #12 alone"
                    )
                )
            }
            guard let file = CoreFoundationValues.data(try material.read()),
                let password = CoreFoundationValues.string(password),
                let options = CoreFoundationValues.dictionary(kSecImportExportPassphrase, password)
            else { throw .tls(.invalidSettings("the client's PKCS #12 cannot be read")) }
            var items: CFArray?
            let status = SecPKCS12Import(file, options, &items)
            guard status == errSecSuccess, let items,
                let item = CoreFoundationValues.elements(of: items, as: CFDictionary.self).first,
                let own = CoreFoundationValues.value(
                    of: kSecImportItemIdentity,
                    in: item,
                    as: SecIdentity.self
                ), let identity = Self.identity(own, chain: item)
            else {
                let why = status == errSecAuthFailed ? "its password is wrong" : "OSStatus \(status)"
                throw .tls(.invalidSettings("the client's PKCS #12 cannot be used: \(why)"))
            }
            return identity
        }

        /// The identity and the certificates between it and an authority.
        private static func identity(_ own: SecIdentity, chain item: CFDictionary) -> sec_identity_t? {
            let chain = CoreFoundationValues.value(
                of: kSecImportItemCertChain,
                in: item,
                as: CFArray.self
            )
            // The first is the identity's own, which goes out by itself.
            let others =
                chain.map {
                    CoreFoundationValues.elements(of: $0, as: SecCertificate.self).dropFirst()
                } ?? []
            guard !others.isEmpty, let list = CoreFoundationValues.array(Array(others)) else {
                return sec_identity_create(own)
            }
            return sec_identity_create_with_certificates(own, list)
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

    extension TLSSettings.Material {
        /// The bytes.
        /// - Throws: `LinkError.tls` with `invalidSettings` for a file that cannot be read.
        fileprivate func read() throws(LinkError) -> [UInt8] {
            switch self {
            case .bytes(let bytes): return bytes
            case .file(let path):
                guard let data = FileManager.default.contents(atPath: path) else {
                    throw .tls(.invalidSettings("the file \(path) cannot be read"))
                }
                return Array(data)
            }
        }
    }
#endif
