#if canImport(Network)
    import Darwin
    import Network
    import Security

    /// The peer of a connection.
    struct NetworkPeer: Sendable {
        /// The host of the endpoint.
        let host: String
        /// Whether this side sends a certificate if the peer requests one.
        let showsIdentity: Bool
    }

    extension LinkError {
        /// Converts an error of Network.framework.
        ///
        /// - Parameters:
        ///   - error: The error.
        ///   - peer: The peer of the connection.
        init(_ error: NWError, of peer: NetworkPeer) {
            switch error {
            case .posix(let code): self.init(code)
            case .dns(let code):
                self = .nameNotResolved(host: peer.host, reason: "DNS error \(code)")
            case .tls(errSSLClosedNoNotify), .tls(errSSLClosedAbort): self = .truncated
            case .tls(let status):
                self = .tls(TLSFault(alert: status, showsIdentity: peer.showsIdentity))
            @unknown default: self = .system(errorNumber: 0, call: "Network.framework: \(error)")
            }
        }

        private init(_ code: POSIXErrorCode) {
            switch code {
            case .ECONNREFUSED: self = .refused
            case .ETIMEDOUT: self = .timedOut
            case .ECONNRESET, .ECONNABORTED, .EPIPE, .ENOTCONN: self = .reset
            case .ENETDOWN, .ENETUNREACH, .EHOSTUNREACH:
                self = .unreachable(errorNumber: code.rawValue)
            case .ECANCELED: self = .closed
            default: self = .system(errorNumber: code.rawValue, call: "Network.framework")
            }
        }
    }

    extension NWError {
        /// Whether waiting for a better network cannot help.
        var isFinal: Bool {
            switch self {
            case .posix(let code): code == .ECONNREFUSED
            // kDNSServiceErr_NoSuchName and kDNSServiceErr_NoSuchRecord (dns_sd.h).
            case .dns(let code): code == -65_538 || code == -65_554
            case .tls: true
            @unknown default: false
            }
        }
    }
#endif
