/// Which request gets a connection: so many to a host at the most, in the order of arrival.
///
/// A value that decides and opens nothing. A place is one connection: in use, idle, or being made.
///
/// | event | then |
/// | --- | --- |
/// | ``request(_:canTake:)`` | an idle connection, a place for a new one, or a number to wait with |
/// | ``giveBack(_:_:)`` | the connection goes to the first that waits, else it is idle |
/// | ``free(_:)`` | the place goes to the first that waits |
/// | ``withdraw(_:_:)`` | the number waits no longer |
/// | ``takeWaiting()`` | no number waits any longer |
///
/// A place is given as nil in the place of a connection.
package struct HTTPPlaces<
    Host: Hashable & Sendable,
    Connection: Sendable,
    Waiter: Sendable
>: Sendable {
    /// What a request hears at once.
    package enum Answer: Sendable {
        /// A connection that an earlier request has left; nil for a place, to make one.
        case granted(Connection?)
        /// It waits, under this number.
        case waits(UInt64)
    }

    /// A waiter that gets a connection that another request has left; nil for a place, to make one.
    package typealias Woken = (waiter: Waiter, connection: Connection?)

    private struct Waiting: Sendable {
        let number: UInt64
        let waiter: Waiter
        let canTake: @Sendable (Connection) -> Bool
    }

    /// How many connections a host has at the most.
    private let limit: Int
    /// How many idle connections there are at the most, to all hosts together.
    private let idleLimit: Int
    private let isUsable: @Sendable (Connection) -> Bool
    private var taken: [Host: Int] = [:]
    private var idle: [(host: Host, connection: Connection)] = []
    private var waiting: [Host: ArraySlice<Waiting>] = [:]
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
    ///   - waiter: Gets the connection if the request has to wait.
    ///   - canTake: Whether a connection to the host serves this request.
    /// - Returns: The connection or the place, or the number under which the request waits; and the idle connections
    ///   that are to be closed: they no longer serve, or one gives way to this request.
    package mutating func request(
        _ host: Host,
        for waiter: Waiter,
        canTake: @escaping @Sendable (Connection) -> Bool
    ) -> (answer: Answer, dropped: [Connection]) {
        // Not all have ended: a server may keep one longer than it has said.
        var dropped = take { [isUsable] in !isUsable($1) }
        if waiting[host] == nil {
            if let index = idle.lastIndex(where: { $0.host == host && canTake($0.connection) }) {
                return (.granted(idle.remove(at: index).connection), dropped)
            }
            if count(of: host) < limit {
                taken[host, default: 0] += 1
                return (.granted(nil), dropped)
            }
            // One to another host that does as well gives way.
            if let index = idle.firstIndex(where: { $0.host == host }) {
                dropped.append(idle.remove(at: index).connection)
                return (.granted(nil), dropped)
            }
        }
        lastNumber += 1
        let last = Waiting(number: lastNumber, waiter: waiter, canTake: canTake)
        waiting[host, default: []].append(last)
        return (.waits(lastNumber), dropped)
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
    /// - Returns: The waiter that gets it or its place, and a connection to close.
    package mutating func giveBack(
        _ host: Host,
        _ connection: Connection
    ) -> (woken: Woken?, surplus: Connection?) {
        if let next = popFirst(host) {
            let canTake = next.canTake(connection)
            return ((next.waiter, canTake ? connection : nil), canTake ? nil : connection)
        }
        idle.append((host, connection))
        guard idle.count > idleLimit else { return (nil, nil) }
        let surplus = idle.removeFirst()
        return (free(surplus.host), surplus.connection)
    }

    /// Takes a place back whose connection is over or was never made.
    /// - Returns: The waiter that gets it.
    @discardableResult
    package mutating func free(_ host: Host) -> Woken? {
        if let next = popFirst(host) { return (next.waiter, nil) }
        let count = count(of: host) - 1
        taken[host] = count > 0 ? count : nil
        return nil
    }

    private mutating func popFirst(_ host: Host) -> Waiting? {
        guard let first = waiting[host]?.popFirst() else { return nil }
        if waiting[host]?.isEmpty == true { waiting[host] = nil }
        return first
    }

    /// Ends a wait.
    /// - Returns: Whether the number was still waiting; otherwise its waiter has got a connection or a place.
    package mutating func withdraw(_ number: UInt64, _ host: Host) -> Bool {
        guard let index = waiting[host]?.firstIndex(where: { $0.number == number }) else {
            return false
        }
        waiting[host]?.remove(at: index)
        if waiting[host]?.isEmpty == true { waiting[host] = nil }
        return true
    }

    /// Ends every wait.
    package mutating func takeWaiting() -> [Waiter] {
        defer { waiting = [:] }
        return waiting.values.joined().sorted { $0.number < $1.number }.map(\.waiter)
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
