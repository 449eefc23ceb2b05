/// An error of Network.framework, by its number.
package enum NetworkFault: Hashable, Sendable {
    /// An error number of Darwin's `errno.h`, which differ from those of Linux.
    case posix(Int32)
    /// An error of `dns_sd.h`.
    case dns(Int32)
    /// An `OSStatus` of Security (`SecureTransport.h`).
    case tls(Int32)
    /// An error that this package does not know.
    case unknown(String)

    /// Whether waiting for a better network cannot help.
    ///
    /// The framework waits after errors that end an attempt anywhere else: a server that resets the connection within
    /// the handshake would be waited for in silence until the time limit.
    package var isFinal: Bool {
        switch self {
        case .posix(let number): Self.finalNumbers.contains(number)
        case .dns(let code): code == Self.noSuchName || code == Self.noSuchRecord
        case .tls: true
        case .unknown: false
        }
    }

    private static let finalNumbers: Set<Int32> = [
        DarwinNumber.notPermitted, DarwinNumber.connectionAborted, DarwinNumber.connectionReset,
        DarwinNumber.timedOut, DarwinNumber.connectionRefused,
    ]

    /// `kDNSServiceErr_NoSuchName`.
    private static let noSuchName: Int32 = -65_538
    /// `kDNSServiceErr_NoSuchRecord`.
    private static let noSuchRecord: Int32 = -65_554
    /// `kDNSServiceErr_PolicyDenied`.
    fileprivate static let policyDenied: Int32 = -65_570
}

/// The numbers of Darwin's `errno.h`.
private enum DarwinNumber {
    static let notPermitted: Int32 = 1
    static let brokenPipe: Int32 = 32
    static let networkDown: Int32 = 50
    static let networkUnreachable: Int32 = 51
    static let connectionAborted: Int32 = 53
    static let connectionReset: Int32 = 54
    static let notConnected: Int32 = 57
    static let timedOut: Int32 = 60
    static let connectionRefused: Int32 = 61
    static let hostUnreachable: Int32 = 65
    static let cancelled: Int32 = 89
}

/// What the meaning of an error depends on.
package struct NetworkPeer: Hashable, Sendable {
    /// The host of the endpoint.
    package let host: String
    /// Whether this side sends a certificate if the peer requests one.
    package let showsIdentity: Bool
    /// Whether this side accepts TLS 1.3 only.
    package let requiresTLS1_3: Bool

    package init(host: String, showsIdentity: Bool = false, requiresTLS1_3: Bool = false) {
        self.host = host
        self.showsIdentity = showsIdentity
        self.requiresTLS1_3 = requiresTLS1_3
    }
}

extension LinkError {
    /// Converts an error of Network.framework.
    ///
    /// - Parameters:
    ///   - fault: The error.
    ///   - peer: The peer of the connection.
    package init(_ fault: NetworkFault, of peer: NetworkPeer) {
        switch fault {
        case .posix(let number): self.init(darwin: number)
        case .dns(NetworkFault.policyDenied): self = .localNetworkDenied
        case .dns(let code):
            self = .nameNotResolved(host: peer.host, reason: "DNS error \(code)")
        // errSSLClosedAbort and errSSLClosedNoNotify.
        case .tls(-9806), .tls(-9816): self = .truncated
        case .tls(let status): self = .tls(TLSFault(status: status, of: peer))
        case .unknown(let words):
            self = .system(errorNumber: 0, call: "Network.framework: \(words)")
        }
    }

    private init(darwin number: Int32) {
        switch number {
        case DarwinNumber.connectionRefused: self = .refused
        case DarwinNumber.timedOut: self = .timedOut
        case DarwinNumber.connectionReset, DarwinNumber.connectionAborted,
            DarwinNumber.brokenPipe, DarwinNumber.notConnected:
            self = .reset
        case DarwinNumber.networkDown, DarwinNumber.networkUnreachable,
            DarwinNumber.hostUnreachable:
            self = .unreachable(errorNumber: number)
        case DarwinNumber.cancelled: self = .closed
        case DarwinNumber.notPermitted:
            self = .notPermitted(
                """
                the system does not permit this connection (EPERM): a sandboxed app for the Mac needs the entitlement \
                com.apple.security.network.client, and one that listens com.apple.security.network.server
                """
            )
        default: self = .system(errorNumber: number, call: "Network.framework")
        }
    }

    /// The user has not granted the app the local network, or not yet.
    package static var localNetworkDenied: LinkError {
        .notPermitted(
            """
            the system denies this app the local network: its user allows it in the settings (Privacy, Local Network), \
            and its Info.plist says why (NSLocalNetworkUsageDescription)
            """
        )
    }
}
