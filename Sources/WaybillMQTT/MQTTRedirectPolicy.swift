import Waybill

/// Whether a client goes where a server sends it (MQTT 5, 4.11).
///
/// A server can refer its clients to others: for a time (Use another server, 0x9C) or for good (Server moved, 0x9D).
/// The other servers get the client's credentials. A referral is therefore followed only over TLS by default. There,
/// the server that refers is verified and has the credentials already. Without TLS, any machine between client and
/// server could send the client elsewhere.
///
/// All options of the transport hold for the other servers, as for those of ``MQTTConfiguration/failover``: scheme,
/// path, credentials and TLS. The certificate must name the server that was reached. A referral never turns TLS off.
public struct MQTTRedirectPolicy: Hashable, Sendable {
    /// When referrals are followed.
    public enum Condition: Sendable {
        /// Never: referrals are reported, and other hosts of the failover come first.
        case never
        /// Over TLS with a verified server.
        case overTLS
        /// Always, also where the network can send the client anywhere.
        case always
    }

    /// When referrals are followed; over TLS by default.
    public var follows: Condition
    /// The number of referrals that are followed in one connect, and one after another; 5 by default, 0 for none.
    ///
    /// A connection of 60 seconds begins a new count.
    public var maximumHops: Int

    /// Makes a policy.
    public init(follows: Condition = .overTLS, maximumHops: Int = 5) {
        self.follows = follows
        self.maximumHops = maximumHops
    }

    /// The number of referrals to follow.
    ///
    /// - Parameters:
    ///   - isSecure: Whether the transport uses TLS.
    ///   - tls: The options of TLS.
    /// - Returns: The number; zero if none is followed.
    package func hops(isSecure: Bool, _ tls: TLSOptions) -> Int {
        let isVerified =
            isSecure && (!tls.dangerouslyAcceptsAnyCertificate || !tls.pinnedPublicKeys.isEmpty)
        let isAllowed =
            switch follows {
            case .never: false
            case .overTLS: isVerified
            case .always: true
            }
        return isAllowed ? max(maximumHops, 0) : 0
    }
}
