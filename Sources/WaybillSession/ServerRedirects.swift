package import WaybillLink
package import WireCore

/// A server's reference to other servers.
package struct ServerRedirect: Hashable, Sendable {
    /// One of the other servers.
    package struct Server: Hashable, Sendable {
        /// A name, or an IPv4 or IPv6 address without brackets.
        package var name: String
        /// The port; nil for that of the URL.
        package var port: UInt16?

        package init(name: String, port: UInt16?) {
            self.name = name
            self.port = port
        }
    }

    /// Whether the service has moved for good.
    package var isPermanent: Bool
    /// The other servers, in the order of preference.
    package var servers: [Server]

    package init(isPermanent: Bool, servers: [Server]) {
        self.isPermanent = isPermanent
        self.servers = servers
    }
}

/// A server that a connect may try, and how it became known.
package struct ServerCandidate: Hashable, Sendable {
    package let endpoint: Endpoint
    /// The servers of which each referred to the next one, and the last one to this one; empty where a chain begins.
    package var chain: [Endpoint] = []
    /// The server to which the service has moved for good, as far as the references lead to it.
    package var move: Endpoint?
    /// Whether the server stands in for a configured host for some time.
    package var isSubstitute = false

    package init(_ endpoint: Endpoint, move: Endpoint? = nil) {
        self.endpoint = endpoint
        self.move = move
    }

    /// The candidate of a reference by this one.
    func referring(to endpoint: Endpoint, isPermanent: Bool) -> ServerCandidate {
        var other = ServerCandidate(endpoint, move: move)
        other.chain = chain + [self.endpoint]
        // A permanent reference of a substitute does not move the service.
        other.isSubstitute = isSubstitute || !isPermanent
        if !other.isSubstitute { other.move = endpoint }
        return other
    }
}

/// What follows when a server refers to others.
package enum RedirectOutcome: Hashable, Sendable {
    /// The servers are tried.
    case followed([ServerCandidate])
    /// No reference is followed, by the options or because the server named no usable one.
    case ignored
    /// Each server was visited before, in this chain.
    case loop([Endpoint])
    /// The chain is longer than allowed.
    case tooLong([Endpoint])

    /// The servers that are tried.
    package var candidates: [ServerCandidate] {
        guard case .followed(let candidates) = self else { return [] }
        return candidates
    }

    /// Why the chain ends here; nil if it does not, or if nothing is followed at all.
    package var failure: String? {
        switch self {
        case .followed, .ignored: nil
        case .loop(let chain): "the servers refer to each other: \(Self.text(chain))"
        case .tooLong(let chain): "the servers refer to too many others: \(Self.text(chain))"
        }
    }

    private static func text(_ chain: [Endpoint]) -> String {
        chain.map(\.description).joined(separator: " → ")
    }
}

/// Which servers a connect tries besides the configured hosts: a value.
///
/// | event | what the next connect tries first |
/// | --- | --- |
/// | the app connects | the server to which the service has moved, then the configured hosts |
/// | a server refers to others | those servers |
/// | a server that was referred to accepts | that server, as long as its connections are only lost |
/// | a configured host accepts | the configured hosts: a move is over, too |
///
/// A chain begins with a configured host. It ends when a connection has lasted ``lastingTime``, or when it is broken by
/// a loop or by its length.
package struct ServerRedirects: Sendable {
    /// A connection of this length ends a chain.
    package static let lastingTime = Duration.seconds(60)

    /// What remains of references.
    private struct Memory: Sendable {
        static let empty = Memory()

        /// The server to which the service has moved for good.
        var moved: Endpoint?
        /// What the next connect tries first.
        var preferred: [ServerCandidate] = []
        /// The candidate of the current connection, if servers referred to it, and the time of its acceptance.
        var accepted: (candidate: ServerCandidate, since: WireInstant)?
        /// The server that has referred its clients to others; it comes last until it accepts, or until the app
        /// connects.
        var avoided: Endpoint?
        /// A server's reference that no connect has followed yet.
        var noted: (from: Endpoint, outcome: RedirectOutcome)?

        var isEmpty: Bool {
            moved == nil && preferred.isEmpty && accepted == nil && avoided == nil && noted == nil
        }
    }

    /// The number of references that may follow each other; zero if none is followed.
    private let maximumHops: Int
    // Out of line: servers rarely refer to others.
    private var box: Shared<Memory>?

    private var memory: Memory {
        get { box?.value ?? .empty }
        set { box = newValue.isEmpty ? nil : Shared(newValue) }
    }

    /// The server to which the service has moved for good.
    package var moved: Endpoint? { memory.moved }

    package init(maximumHops: Int) {
        self.maximumHops = max(maximumHops, 0)
    }

    /// Begins a connect.
    ///
    /// - Parameters:
    ///   - hosts: The configured hosts, in order.
    ///   - isReconnection: Whether the connect follows the loss of a connection.
    /// - Returns: The servers to try, in order.
    package mutating func begin(_ hosts: [Endpoint], isReconnection: Bool) -> RedirectCourse {
        var memory = memory
        if !isReconnection {
            memory.preferred = []
            memory.avoided = nil
        } else if let noted = memory.noted {
            memory.preferred = noted.outcome.candidates
        }
        memory.noted = nil
        memory.accepted = nil
        self.memory = memory
        let home = memory.moved.map { [ServerCandidate($0, move: $0)] } ?? []
        let candidates = memory.preferred + home + hosts.map { ServerCandidate($0) }
        return RedirectCourse(
            candidates.filter { $0.endpoint != memory.avoided }
                + candidates.filter { $0.endpoint == memory.avoided },
            maximumHops: maximumHops
        )
    }

    /// A server has referred to others, in its answer to a connect or at the end of a connection.
    ///
    /// - Parameters:
    ///   - servers: The servers, as endpoints.
    ///   - isPermanent: Whether the service has moved for good.
    ///   - candidate: The server that refers.
    ///   - now: The time.
    /// - Returns: What follows.
    package mutating func note(
        _ servers: [Endpoint],
        isPermanent: Bool,
        by candidate: ServerCandidate,
        at now: WireInstant
    ) -> RedirectOutcome {
        var origin = candidate
        if let accepted = memory.accepted, accepted.candidate.endpoint == candidate.endpoint,
            accepted.since.duration(to: now) >= Self.lastingTime
        {
            origin.chain = []
        }
        let outcome = outcome(of: servers, isPermanent: isPermanent, by: origin)
        memory.avoided = candidate.endpoint
        memory.noted = (candidate.endpoint, outcome)
        return outcome
    }

    private func outcome(
        of servers: [Endpoint],
        isPermanent: Bool,
        by origin: ServerCandidate
    ) -> RedirectOutcome {
        guard maximumHops > 0, !servers.isEmpty else { return .ignored }
        let visited = origin.chain + [origin.endpoint]
        let unseen = servers.filter { !visited.contains($0) }
        guard !unseen.isEmpty else { return .loop(visited + servers.prefix(1)) }
        guard visited.count <= maximumHops else { return .tooLong(visited + unseen.prefix(1)) }
        return .followed(unseen.map { origin.referring(to: $0, isPermanent: isPermanent) })
    }

    /// Takes the reference with which a server has refused a connect.
    package mutating func takeNoted(from endpoint: Endpoint) -> RedirectOutcome? {
        guard let noted = memory.noted, noted.from == endpoint else { return nil }
        memory.noted = nil
        return noted.outcome
    }

    /// A server has accepted the connection.
    package mutating func accept(_ candidate: ServerCandidate, at now: WireInstant) {
        var memory = memory
        // Only a chain has a length that the time of its last connection ends.
        memory.accepted = candidate.chain.isEmpty ? nil : (candidate, now)
        memory.moved = candidate.move
        if memory.avoided == candidate.endpoint { memory.avoided = nil }
        memory.preferred = candidate.isSubstitute ? [candidate] : []
        self.memory = memory
    }
}

/// The course of one connect over several servers: a value.
package struct RedirectCourse: Sendable {
    private var waiting: [ServerCandidate]
    private var tried: [Endpoint] = []
    private var hopsLeft: Int
    /// Whether more than one server is known.
    package private(set) var hasAlternatives: Bool

    package init(_ candidates: [ServerCandidate], maximumHops: Int) {
        waiting = candidates
        hopsLeft = maximumHops
        hasAlternatives = Set(candidates.map(\.endpoint)).count > 1
    }

    /// Returns the next server; none is tried twice.
    package mutating func next() -> ServerCandidate? {
        while !waiting.isEmpty {
            let candidate = waiting.removeFirst()
            guard !tried.contains(candidate.endpoint) else { continue }
            tried.append(candidate.endpoint)
            return candidate
        }
        return nil
    }

    /// A server has refused the connect with a reference to others, which are tried next.
    ///
    /// - Returns: What follows, within the limits of this connect.
    package mutating func follow(_ outcome: RedirectOutcome) -> RedirectOutcome {
        guard case .followed(let candidates) = outcome, let first = candidates.first else {
            return outcome
        }
        let untried = candidates.filter { !tried.contains($0.endpoint) }
        guard !untried.isEmpty else { return .loop(first.chain + [first.endpoint]) }
        // Counted over all branches, so that one connect ends however many servers refer to others.
        guard hopsLeft > 0 else { return .tooLong(first.chain + [first.endpoint]) }
        hopsLeft -= 1
        hasAlternatives = true
        waiting = untried + waiting
        return .followed(untried)
    }
}
