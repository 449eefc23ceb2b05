import MQTTWire
import WireCore

/// A connection that gets a session.
struct LoopbackAdmission: Sendable {
    let client: UInt64
    let connect: MQTTConnect
    let session: UInt64
    /// True when the session existed before.
    let isPresent: Bool
}

/// The answer to a CONNECT.
enum LoopbackEntrance: Sendable {
    case admitted(LoopbackAdmission)
    /// Another connection has the session. It is to be closed, and so is one that waited for the session before.
    case waits(for: UInt64, insteadOf: UInt64?)
}

/// The consequences of the end of a connection.
struct LoopbackDeparture: Sendable {
    var will: MQTTWill?
    var successor: LoopbackAdmission?
}

/// Sessions and the connections that have them.
///
/// A connection has a session from its CONNECT until its last event has been handled. A second connection of the
/// same client identifier waits for that, so that no message of the first comes after one of the second.
extension LoopbackExchange {
    /// Finds the session for a CONNECT, or makes one.
    mutating func enter(
        _ connect: MQTTConnect,
        _ client: UInt64,
        at now: WireInstant
    ) -> LoopbackEntrance {
        removeExpired(at: now)
        let name = WireName(connect.clientIdentifier)
        guard let number = sessionNumbers[name], let owner = sessions[number]?.client else {
            return .admitted(assign(connect, client))
        }
        let earlier = sessions[number]?.successor?.client
        sessions[number]?.successor = .init(client: client, connect: connect)
        return .waits(for: owner, insteadOf: earlier)
    }

    /// Gives a session without a connection to one.
    private mutating func assign(_ connect: MQTTConnect, _ client: UInt64) -> LoopbackAdmission {
        let name = WireName(connect.clientIdentifier)
        if connect.cleanStart, let number = sessionNumbers[name] { removeSession(number) }
        let isPresent = sessionNumbers[name] != nil
        let number = sessionNumbers[name] ?? makeSession(name)
        sessions[number]?.client = client
        sessions[number]?.endsAt = nil
        sessions[number]?.expiry = LoopbackSession.expiry(of: connect)
        sessions[number]?.will = connect.will
        clientSessions[client] = number
        return LoopbackAdmission(
            client: client,
            connect: connect,
            session: number,
            isPresent: isPresent
        )
    }

    private mutating func makeSession(_ name: WireName) -> UInt64 {
        lastSession += 1
        sessions[lastSession] = LoopbackSession(clientIdentifier: name.text)
        sessionNumbers[name] = lastSession
        return lastSession
    }

    /// Lets messages go to a connection from now on.
    /// - Returns: What it begins with; nil when the session is gone or another's.
    mutating func open(
        _ number: UInt64,
        _ client: UInt64
    ) -> (state: MQTTSessionState, waiting: ArraySlice<MQTTOutgoingMessage>)? {
        guard var session = sessions[number], session.client == client else { return nil }
        defer { sessions[number] = session }
        let state = session.state
        session.state = MQTTSessionState()
        session.isOpen = true
        return (state, session.takeWaiting())
    }

    /// Ends a connection's hold of its session.
    ///
    /// - Parameters:
    ///   - client: The connection.
    ///   - state: What was under way over it.
    ///   - closure: How it ended.
    ///   - keepsSession: Whether the session goes on for as long as the client has asked for.
    ///   - now: The time.
    /// - Returns: The will to publish, and the connection that gets the session next.
    mutating func leave(
        _ client: UInt64,
        _ state: MQTTSessionState,
        _ closure: MQTTServerClosure,
        keepsSession: Bool,
        at now: WireInstant
    ) -> LoopbackDeparture {
        guard let number = clientSessions.removeValue(forKey: client),
            var session = sessions[number]
        else {
            forgetSuccessor(client)
            return LoopbackDeparture()
        }
        if session.isOpen { session.state = state }
        session.isOpen = false
        session.client = nil
        var departure = LoopbackDeparture(will: session.will.take())
        if case .disconnected(let packet) = closure {
            if packet.reasonCode != .disconnectWithWillMessage { departure.will = nil }
            // A session that ends with its connection cannot be kept after all (MQTT 5, 3.14.2.2.2).
            if session.expiry > 0, let expiry = packet.properties.sessionExpiryInterval {
                session.expiry = expiry
            }
        }
        if !keepsSession { session.expiry = 0 }
        session.endsAt =
            session.expiry == .max ? nil : now.advanced(by: .seconds(Int64(session.expiry)))
        let successor = session.successor.take()
        sessions[number] = session
        if session.expiry == 0 { removeSession(number) }
        departure.successor = successor.map { assign($0.connect, $0.client) }
        return departure
    }

    /// Forgets a connection that has ended while it waited for a session.
    private mutating func forgetSuccessor(_ client: UInt64) {
        for number in sessions.keys where sessions[number]?.successor?.client == client {
            sessions[number]?.successor = nil
        }
    }

    /// Keeps a message that a connection did not take any more.
    /// - Returns: The connection that has the session by now, and takes it; nil when it is kept or the session gone.
    mutating func keep(
        _ message: MQTTOutgoingMessage,
        for number: UInt64,
        refusedBy client: UInt64
    ) -> UInt64? {
        guard let session = sessions[number] else { return nil }
        if session.isOpen, let owner = session.client, owner != client { return owner }
        keep(message, for: number)
        return nil
    }

    mutating func keep(_ message: MQTTOutgoingMessage, for number: UInt64) {
        droppedCount += sessions[number]?.keep(message, within: limits) ?? 0
    }

    /// All sessions in the order in which they began, with the connections that are open.
    var reports: [(report: LoopbackSessionReport, client: UInt64?)] {
        sessions.sorted { $0.key < $1.key }.map { number, session in
            let report = LoopbackSessionReport(
                clientIdentifier: session.clientIdentifier,
                isConnected: session.isOpen,
                filters: filters(of: number),
                queuedMessageCount: session.messageCount
            )
            return (report, session.isOpen ? session.client : nil)
        }
    }

    // MARK: The end of sessions

    /// Removes the sessions whose time is up.
    mutating func removeExpired(at now: WireInstant) {
        let expired = sessions.filter { _, session in session.endsAt.map { $0 <= now } ?? false }
        for number in expired.keys.sorted() { removeSession(number) }
    }

    private mutating func removeSession(_ number: UInt64) {
        guard let session = sessions.removeValue(forKey: number) else { return }
        sessionNumbers[session.clientIdentifier] = nil
        removeSubscriptions(of: number, session.filters)
    }
}
