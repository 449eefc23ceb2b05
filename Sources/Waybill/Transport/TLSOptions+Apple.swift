#if canImport(Network)
    public import Security

    extension TLSOptions {
        /// Decides whether the server's certificate is accepted, in place of the package; nil, the default, for none.
        ///
        /// The trust has a policy for the host, and the given ``authorities``. The function may change both, and calls
        /// `SecTrustEvaluateWithError` or what it needs. ``pinnedPublicKeys`` still apply, to a chain that it has
        /// accepted. It gets the trust and the host that the certificate must name. It runs on a queue of the handshake,
        /// and may block.
        public var evaluatesTrust: (@Sendable (_ trust: SecTrust, _ host: String) -> Bool)? {
            get {
                guard let own = ownEvaluation else { return nil }
                return { trust, host in own(trust, host) }
            }
            set {
                guard let newValue else { return ownEvaluation = nil }
                ownEvaluation = { trust, host in
                    // The link passes a `SecTrust`, and a cast to such a type cannot fail on an Apple platform.
                    let address = Unmanaged.passUnretained(trust).toOpaque()
                    let typed = Unmanaged<SecTrust>.fromOpaque(address).takeUnretainedValue()
                    return newValue(typed, host)
                }
            }
        }
    }
#endif
