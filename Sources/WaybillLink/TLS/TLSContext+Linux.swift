#if os(Linux)
    import CWaybillTLS

    /// The shared context of the connections of one dialer or server: OpenSSL's context, made from the settings.
    ///
    /// `@unchecked Sendable`, because: only `init` changes it. Connections later change only the session to resume,
    /// which has a lock of its own.
    package final class TLSContext: @unchecked Sendable {
        /// The side of the connections.
        package enum Role: Sendable {
            case client
            /// Needs an identity; requests the client's certificate if it has authorities.
            case server
        }

        // Made in `init` and freed in `deinit`: valid as long as the object.
        let pointer: UnsafeMutableRawPointer
        let settings: TLSSettings

        /// Makes the context, and reads the files in the settings.
        ///
        /// - Parameters:
        ///   - settings: The settings of the connections.
        ///   - role: The side of the connections.
        /// - Throws: `LinkError.tls` with `libraryMissing` or `invalidSettings`.
        package init(_ settings: TLSSettings, role: Role = .client) throws(LinkError) {
            guard waybill_tls_is_available() != 0 else { throw .tls(Self.libraryMissing) }
            let version: Int32 = settings.minimumVersion == .v1_3 ? 0x0304 : 0x0303
            guard let pointer = waybill_tls_context_create(role == .server ? 1 : 0, version) else {
                throw .system(errorNumber: 0, call: "SSL_CTX_new")
            }
            self.pointer = pointer
            self.settings = settings
            try trust(role)
            if let identity = settings.identity { try show(identity) }
            try prepare()
        }

        deinit {
            waybill_tls_context_destroy(pointer)
        }

        /// The error text without OpenSSL.
        static let libraryMissing = TLSFault.libraryMissing(
            "TLS needs OpenSSL 3 or 1.1.1, which this system has not: install libssl3 (Debian, Ubuntu), "
                + "openssl-libs (Fedora) or libssl3 (Alpine)"
        )

        private func trust(_ role: Role) throws(LinkError) {
            if role == .client, settings.acceptsAnyCertificate {
                return waybill_tls_context_verify(pointer, 0)
            }
            guard !settings.authorities.isEmpty else {
                guard role == .client else { return }
                return try check("the system's authorities") { text, size in
                    waybill_tls_context_trust_system(pointer, text, size)
                }
            }
            for authority in settings.authorities {
                let bytes = try authority.bytes()
                try check("\(authority) as an authority") { text, size in
                    waybill_tls_context_trust(pointer, bytes, bytes.count, text, size)
                }
            }
            waybill_tls_context_verify(pointer, 1)
        }

        private func show(_ identity: TLSSettings.Identity) throws(LinkError) {
            switch identity {
            case .certificate(let certificate, let key, let password):
                let certificateBytes = try certificate.bytes()
                let keyBytes = try key.bytes()
                if password == nil, isEncrypted(keyBytes) {
                    throw .tls(.invalidSettings("\(key) is encrypted: its password is missing"))
                }
                try check("\(certificate) with \(key) as the identity") { text, size in
                    waybill_tls_context_identify(
                        pointer,
                        certificateBytes,
                        certificateBytes.count,
                        keyBytes,
                        keyBytes.count,
                        password,
                        text,
                        size
                    )
                }
            case .keychain(let label):
                throw .tls(.invalidSettings("\(label): only Apple platforms have a keychain"))
            case .pkcs12(let file, let password):
                let bytes = try file.bytes()
                try check("\(file) as the identity") { text, size in
                    waybill_tls_context_identify_pkcs12(
                        pointer,
                        bytes,
                        bytes.count,
                        password,
                        text,
                        size
                    )
                }
            }
        }

        /// Whether a private key in PEM says that it is encrypted (RFC 7468, 11; RFC 1421, 4.6.1.1).
        private func isEncrypted(_ key: [UInt8]) -> Bool {
            let marks = ["-----BEGIN ENCRYPTED PRIVATE KEY-----", "Proc-Type: 4,ENCRYPTED"]
            return marks.contains { key.contains(Array($0.utf8)) }
        }

        private func prepare() throws(LinkError) {
            var protocols: [UInt8] = []
            for name in settings.applicationProtocols {
                protocols.append(UInt8(truncatingIfNeeded: name.utf8.count))
                protocols += name.utf8
            }
            let hashes = settings.pinnedPublicKeys.flatMap { $0 }
            guard waybill_tls_context_offer(pointer, protocols, protocols.count) == 1,
                waybill_tls_context_pin(pointer, hashes, hashes.count / 32) == 1
            else { throw .tls(.invalidSettings("the application protocols cannot be offered")) }
        }

        /// Calls a function of the library and throws with its error text if it fails.
        private func check(
            _ what: @autoclosure () -> String,
            _ body: (UnsafeMutablePointer<CChar>?, Int) -> Int32
        ) throws(LinkError) {
            var text = [CChar](repeating: 0, count: 256)
            // In bounds: the library gets the size, and terminates its text with NUL.
            let isFine = text.withUnsafeMutableBufferPointer { body($0.baseAddress, $0.count) } == 1
            guard !isFine else { return }
            let words = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
            let reason = String(decoding: words, as: UTF8.self)
            throw .tls(.invalidSettings("\(what()) cannot be used: \(reason)"))
        }
    }
#endif
