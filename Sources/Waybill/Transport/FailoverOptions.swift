import WireCore

/// Which other hosts a transport may connect to than that of its URL, and in which order they are tried.
///
/// They are one service under several names: scheme, path, credentials and all options are the same for each.
/// The certificate must name the host that was reached, and the fields that name it (`Host` of HTTP and
/// WebSocket, `host` of STOMP unless it is configured) follow it.
///
/// Each connect tries one after another until a server accepts, from the beginning of the order. The transport's
/// connect timeout holds for each host, so that a connect may take that long times the number of hosts. The next
/// host is tried after whatever may be a matter of the one: it was not found or not reached, it did not answer in
/// time, hung up, broke the protocol, could not be verified, or said that it is busy or not available. Any other
/// no, to credentials above all, is final. When every host has failed the error has a ``FailoverFailure`` as
/// `underlying`.
public struct FailoverOptions: Hashable, Sendable {
    /// In which order hosts are tried.
    public enum Order: Sendable {
        /// That of the URL first, then the others as they are listed.
        case inOrder
        /// All in an order that is drawn anew for each connect, so that many clients spread over the hosts.
        case shuffled
    }

    /// The other hosts, each `name`, `name:port`, an IPv4 address or an IPv6 address in brackets likewise; none by
    /// default.
    ///
    /// The port is that of the URL unless it is named.
    public var hosts: [String]
    /// In which order they are tried; the URL's first by default.
    public var order: Order

    /// Collects options.
    public init(hosts: [String] = [], order: Order = .inOrder) {
        self.hosts = hosts
        self.order = order
    }
}

/// That no host of several could be connected to.
///
/// The `underlying` error of a ``WaybillError``, whose code is that of the last failure that a retry can mend, or
/// of the last one.
public struct FailoverFailure: Error, Sendable {
    /// One host's failure.
    public struct Attempt: Sendable {
        /// The host and its port.
        public var host: String
        /// Why there is no connection to it.
        public var error: WaybillError

        /// Describes a failure.
        public init(host: String, error: WaybillError) {
            self.host = host
            self.error = error
        }
    }

    /// What happened, host by host in the order in which they were tried.
    public var attempts: [Attempt]

    /// Describes failures.
    public init(attempts: [Attempt]) {
        self.attempts = attempts
    }
}

extension FailoverFailure: CustomStringConvertible {
    /// Each host with what went wrong.
    public var description: String {
        attempts.map { "\($0.host): \($0.error.message)" }.joined(separator: "; ").escaped
    }
}
