/// Which request gets a connection: so many to a host at the most, in the order of arrival.
///
/// A value that decides and opens nothing. A place is one connection: in use, idle, or being made.
///
/// | event | then |
/// | --- | --- |
/// | ``request(_:canTake:)`` | an idle connection, a place for a new one, or a number to wait with |
/// | ``giveBack(_:_:)`` | the connection goes to the first that waits, else it is idle |
/// | ``free(_:)`` | the place goes to the first that waits |
/// | ``withdraw(_:_:)`` | the number waits no longer, or what it was given comes back |
package struct HTTPPlaces<Host: Hashable & Sendable, Connection: Sendable>: Sendable {
    /// What a request is given.
    package enum Grant: Sendable {
        /// A connection that an earlier request has left.
        case kept(Connection)
        /// A place, to make a connection.
        case place
    }

    /// What a request hears at once.
    package enum Answer: Sendable {
        case granted(Grant, surplus: Connection?)
        /// It waits, under this number.
        case waits(UInt64)
    }

    private struct Waiter: Sendable {
        let number: UInt64
        let canTake: @Sendable (Connection) -> Bool
    }

    /// How many connections a host has at the most.
    private let limit: Int
    /// How many idle connections there are at the most, to all hosts together.
    private let idleLimit: Int
    private let isUsable: @Sendable (Connection) -> Bool
    private var taken: [Host: Int] = [:]
    private var idle: [(host: Host, connection: Connection)] = []
    private var waiting: [Host: ArraySlice<Waiter>] = [:]
    /// What was given to numbers that have not fetched it yet.
    private var grants: [UInt64: Grant] = [:]
    private var lastNumber: UInt64 = 0

    /// - Parameters:
    ///   - limit: How many connections a host has at the most; at least one.
    ///   - isUsable: Whether an idle connection still serves.
    package init(limit: Int, isUsable: @escaping @Sendable (Connection) -> Bool) {
        self.limit = max(limit, 1)
        idleLimit = max(limit, 4)
        self.isUsable = isUsable
    }

    /// How many connections to a host there are, idle ones and those that are being made included.
    package func count(of host: Host) -> Int { taken[host] ?? 0 }

    /// How many requests wait for a connection to a host.
    package func waitingCount(of host: Host) -> Int { waiting[host]?.count ?? 0 }

    /// Asks for a connection.
    ///
    /// - Parameters:
    ///   - host: The host.
    ///   - canTake: Whether a connection to the host serves this request.
    /// - Returns: The connection or the place, or the number under which the request waits; and the idle connections
    ///   that no longer serve, which are to be closed.
    package mutating func request(
        _ host: Host,
        canTake: @escaping @Sendable (Connection) -> Bool
    ) -> (answer: Answer, dropped: [Connection]) {
        // Not all have ended: a server may keep one longer than it has said.
        let dropped = take { [isUsable] in !isUsable($1) }
        return (place(host, canTake), dropped)
    }

    private mutating func place(
        _ host: Host,
        _ canTake: @escaping @Sendable (Connection) -> Bool
    ) -> Answer {
        guard waiting[host] == nil else { return wait(host, canTake) }
        if let index = idle.lastIndex(where: { $0.host == host && canTake($0.connection) }) {
            return .granted(.kept(idle.remove(at: index).connection), surplus: nil)
        }
        if count(of: host) < limit {
            taken[host, default: 0] += 1
            return .granted(.place, surplus: nil)
        }
        // One to another host that does as well gives way.
        if let index = idle.firstIndex(where: { $0.host == host }) {
            return .granted(.place, surplus: idle.remove(at: index).connection)
        }
        return wait(host, canTake)
    }

    private mutating func wait(
        _ host: Host,
        _ canTake: @escaping @Sendable (Connection) -> Bool
    ) -> Answer {
        lastNumber += 1
        waiting[host, default: []].append(Waiter(number: lastNumber, canTake: canTake))
        return .waits(lastNumber)
    }

    private mutating func take(where isWanted: (Host, Connection) -> Bool) -> [Connection] {
        var taken: [(host: Host, connection: Connection)] = []
        idle.removeAll { host, connection in
            // Asked once: a connection may end between two questions.
            guard isWanted(host, connection) else { return false }
            taken.append((host, connection))
            return true
        }
        for (host, _) in taken { free(host) }
        return taken.map(\.connection)
    }

    /// Takes a connection back that another request may use.
    /// - Returns: The number that got it or its place, and a connection to close.
    package mutating func giveBack(
        _ host: Host,
        _ connection: Connection
    ) -> (woken: UInt64?, surplus: Connection?) {
        if let next = popFirst(host) {
            let canTake = next.canTake(connection)
            grants[next.number] = canTake ? .kept(connection) : .place
            return (next.number, canTake ? nil : connection)
        }
        idle.append((host, connection))
        guard idle.count > idleLimit else { return (nil, nil) }
        let surplus = idle.removeFirst()
        return (free(surplus.host), surplus.connection)
    }

    /// Takes a place back whose connection is over or was never made.
    /// - Returns: The number that got it.
    @discardableResult
    package mutating func free(_ host: Host) -> UInt64? {
        if let next = popFirst(host) {
            grants[next.number] = .place
            return next.number
        }
        let count = count(of: host) - 1
        taken[host] = count > 0 ? count : nil
        return nil
    }

    private mutating func popFirst(_ host: Host) -> Waiter? {
        guard let first = waiting[host]?.popFirst() else { return nil }
        if waiting[host]?.isEmpty == true { waiting[host] = nil }
        return first
    }

    /// Fetches what a number was given; nil when it was given nothing.
    package mutating func fetch(_ number: UInt64) -> Grant? {
        grants.removeValue(forKey: number)
    }

    /// Ends a wait.
    /// - Returns: What the number was given already, which is to be given back.
    package mutating func withdraw(_ number: UInt64, _ host: Host) -> Grant? {
        if let grant = fetch(number) { return grant }
        waiting[host]?.removeAll { $0.number == number }
        if waiting[host]?.isEmpty == true { waiting[host] = nil }
        return nil
    }

    /// Takes idle connections to a host, to close them.
    package mutating func takeIdle(
        _ host: Host,
        where isDoubtful: (Connection) -> Bool
    ) -> [Connection] {
        take { $0 == host && isDoubtful($1) }
    }

    /// Takes all idle connections, to close them.
    package mutating func takeIdle() -> [Connection] { take { _, _ in true } }
}
