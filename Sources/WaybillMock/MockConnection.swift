/// The connection of a mock: a value that decides, for each event, what the requests of the mock do.
///
/// | state | a request that needs a connection | `connect` | interruption | loss | `disconnect` |
/// |---|---|---|---|---|---|
/// | idle | connects | connects | away | idle | left |
/// | left | is refused | connects | away | left | left |
/// | connecting | joins the attempt | is refused | away | idle | left |
/// | connected | passes | is refused | away | idle | left, once it is answered |
/// | away | waits | returning | away | idle | left |
/// | returning | waits | joins the attempt | returning | idle | left |
/// | shut down | is refused | is refused | shut down | shut down | shut down |
package enum MockConnection: Hashable, Sendable {
    /// The number of an attempt to connect, of which at most one is under way.
    package typealias Attempt = UInt64

    /// There is no connection.
    case idle
    /// The app has disconnected: only `connect` makes a connection.
    case left
    case connecting(Attempt)
    case connected
    /// The connection is lost for a while, and requests wait for its return.
    case away
    case returning(Attempt)
    case shutDown

    /// What a request needs of the connection.
    package enum Need: Hashable, CaseIterable, Sendable {
        /// Nothing: an event stream has a connection of its own.
        case nothing
        /// That it is not away (a mock without a protocol).
        case presence
        /// A connection, which is made on demand.
        case connection
        /// The connection of the moment.
        case present
        /// The connection of the moment, or the next one after an interruption.
        case presentOrNext
    }

    package enum Refusal: Hashable, Sendable {
        case shutDown, disconnectedByApp, noConnection, alreadyConnected
    }

    package enum Admission: Hashable, Sendable {
        case pass
        /// Begin an attempt with the number given, and wait for it.
        case begin
        /// Wait for the attempt that is under way.
        case join
        /// Wait until the connection is back.
        case wait
        case refuse(Refusal)
    }

    /// The end of an attempt.
    package enum Conclusion: Hashable, Sendable {
        /// The attempt was given up before.
        case stale
        case connected
        /// The connection is back: what waits goes on.
        case restored
        case failed
        /// The connection stays away.
        case stillAway
        /// The connection will not come back.
        case lost
    }

    /// True while requests wait for the connection to return.
    package var isAway: Bool {
        switch self {
        case .away, .returning: true
        case .idle, .left, .connecting, .connected, .shutDown: false
        }
    }

    /// The attempt that is under way.
    package var attempt: Attempt? {
        switch self {
        case .connecting(let attempt), .returning(let attempt): attempt
        case .idle, .left, .connected, .away, .shutDown: nil
        }
    }

    /// True while the request that the connection was made with may be needed again.
    package var keepsGreeting: Bool {
        switch self {
        case .connecting, .connected, .away, .returning: true
        case .idle, .left, .shutDown: false
        }
    }

    // MARK: Requests

    /// A request other than `connect` and `disconnect` has come.
    package mutating func admit(_ need: Need, _ attempt: Attempt) -> Admission {
        switch (self, need) {
        case (.shutDown, _): return .refuse(.shutDown)
        case (_, .nothing), (.connected, _): return .pass
        case (.away, .present), (.returning, .present): return .refuse(.noConnection)
        case (.away, _), (.returning, _): return .wait
        case (_, .presence): return .pass
        case (_, .present), (_, .presentOrNext): return .refuse(.noConnection)
        case (.connecting, .connection): return .join
        case (.left, .connection): return .refuse(.disconnectedByApp)
        case (.idle, .connection):
            self = .connecting(attempt)
            return .begin
        }
    }

    /// The app asks for a connection.
    package mutating func connect(_ attempt: Attempt) -> Admission {
        switch self {
        case .idle, .left:
            self = .connecting(attempt)
            return .begin
        case .away:
            self = .returning(attempt)
            return .begin
        case .returning: return .join
        case .connecting, .connected: return .refuse(.alreadyConnected)
        case .shutDown: return .refuse(.shutDown)
        }
    }

    /// The app asks for the end of the connection.
    package mutating func leave() {
        switch self {
        case .idle, .left, .connecting, .away, .returning: self = .left
        case .connected, .shutDown: break
        }
    }

    /// The peer has answered a `disconnect`.
    package mutating func noteLeft() {
        if self != .shutDown { self = .left }
    }

    // MARK: The connection

    /// The connection is lost for a while.
    package mutating func interrupt() {
        switch self {
        case .idle, .left, .connecting, .connected, .away: self = .away
        case .returning, .shutDown: break
        }
    }

    /// The connection is to return.
    /// - Returns: True when an attempt with the number given begins.
    package mutating func restore(_ attempt: Attempt) -> Bool {
        guard case .away = self else { return false }
        self = .returning(attempt)
        return true
    }

    package mutating func noteSuccess(of attempt: Attempt) -> Conclusion {
        guard self.attempt == attempt else { return .stale }
        defer { self = .connected }
        return isAway ? .restored : .connected
    }

    /// An attempt has failed; a retryable error leaves a lost connection away.
    package mutating func noteFailure(of attempt: Attempt, isRetryable: Bool) -> Conclusion {
        guard self.attempt == attempt else { return .stale }
        let wasAway = isAway
        self = wasAway && isRetryable ? .away : .idle
        return wasAway ? (isRetryable ? .stillAway : .lost) : .failed
    }

    /// The connection is lost for good.
    package mutating func drop() {
        switch self {
        case .idle, .connecting, .connected, .away, .returning: self = .idle
        case .left, .shutDown: break
        }
    }

    package mutating func shutDown() {
        self = .shutDown
    }
}
