import WireCore

/// The other hosts that a transport may connect to, and the order in which it tries them.
///
/// All hosts offer the same service: scheme, path, credentials and options are the same for each. The certificate must
/// name the host that was reached. Fields that name the host follow it (`Host` of HTTP and WebSocket, `host` of STOMP
/// unless it is configured).
///
/// A connection with a URL of its own (``Credentials/url``, ``ConnectOption/url(_:)``) tries that URL's host alone.
///
/// Each connect tries the hosts in order, from the start, until a server accepts. A host whose connection ended before
/// ``ReconnectionPolicy/healthyTime`` comes last, until a connection has lasted that long. The transport's connect
/// timeout holds for each host, so a connect may take that long times the number of hosts.
///
/// The next host is tried after a failure that may concern only one host. Such a host was not found or not reached, did
/// not answer in time, closed the connection, violated the protocol, could not be verified, or was busy or unavailable.
/// Any other refusal, above all of credentials, is final. When every host has failed, the error has a
/// ``FailoverFailure`` as `underlying`.
public struct FailoverOptions: Hashable, Sendable {
    /// The order in which hosts are tried.
    public enum Order: Sendable {
        /// The host of the URL first, then the others as listed.
        case inOrder
        /// A random order for each connect, so that many clients spread over the hosts.
        case shuffled
    }

    /// The other hosts; none by default.
    ///
    /// Each is a `name`, `name:port`, an IPv4 address, or an IPv6 address in brackets, with or without a port. Without
    /// a port, that of the URL is used.
    public var hosts: [String]
    /// The order in which hosts are tried; the URL's host first by default.
    public var order: Order

    /// Makes a set of options.
    public init(hosts: [String] = [], order: Order = .inOrder) {
        self.hosts = hosts
        self.order = order
    }
}

/// The failures of all hosts.
///
/// It is the `underlying` error of a ``WaybillError``. The code of that error is that of the last retryable failure, or
/// else of the last failure.
public struct FailoverFailure: Error, Sendable {
    /// The failure of one host.
    public struct Attempt: Sendable {
        /// The host and its port.
        public var host: String
        /// The error of connecting to it.
        public var error: WaybillError

        /// Describes a failure.
        public init(host: String, error: WaybillError) {
            self.host = host
            self.error = error
        }
    }

    /// The failures, in the order in which the hosts were tried.
    public var attempts: [Attempt]

    /// Makes an error with the failures of hosts.
    public init(attempts: [Attempt]) {
        self.attempts = attempts
    }
}

extension FailoverFailure: CustomStringConvertible {
    /// Each host with its error.
    public var description: String {
        attempts.map { "\($0.host): \($0.error.message)" }.joined(separator: "; ").escaped
    }
}
