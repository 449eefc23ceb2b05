package import Waybill
import WaybillLink
public import WireCore

/// The life of a transport: when it connects, over which session requests go, and when it is over.
///
/// | phase | what moves it on |
/// | --- | --- |
/// | idle, disconnected | a request, ``connect(_:timeout:)`` → connecting |
/// | connecting | the peer accepts → connected; failure, disconnect, nobody waits → disconnected |
/// | connected | ``disconnect()``, the session's end → disconnected |
/// | any | ``shutdown()`` → shut down, for good |
@usableFromInline
package final class ConnectionLifecycle<Session: ConnectionSession>: Sendable {
    /// Where a transport stands.
    @usableFromInline
    package enum Phase: Sendable {
        /// There is no connection.
        case idle
        /// One is being made.
        case connecting(ConnectionAttempt<Session>)
        /// There is one.
        case connected(Session)
        /// There will not be another one.
        case shutDown
    }

    /// When and how long.
    package struct Settings: Sendable {
        /// Whether a request connects first when there is no connection.
        package var connectsOnDemand: Bool
        /// How long connecting to a host may take, up to the peer's acceptance.
        package var connectTimeout: Duration
        /// How long closing may take.
        package var closeTimeout: Duration

        package init(
            connectsOnDemand: Bool,
            connectTimeout: Duration,
            closeTimeout: Duration
        ) {
            self.connectsOnDemand = connectsOnDemand
            self.connectTimeout = connectTimeout
            self.closeTimeout = closeTimeout
        }
    }

    /// Makes a session over a new stream to a host, not begun yet, within a time.
    ///
    /// Throws `WaybillError`, or `CancellationError` when the task was cancelled.
    package typealias Opening = @Sendable (Failover.Route, Duration) async throws -> Session

    @usableFromInline let phase = Locked(Phase.idle)
    private let settings: Settings
    private let failover: Failover
    private let open: Opening

    /// Hears of every change once.
    package let states = ConnectionStateSource()

    package init(_ settings: Settings, _ failover: Failover, open: @escaping Opening) {
        self.settings = settings
        self.failover = failover
        self.open = open
    }

    // MARK: For requests

    /// The session over which requests go now; nil when there is none.
    ///
    /// Every message asks for it, so that it is compiled into the transport's own module.
    @inlinable package var connected: Session? {
        phase.withLock { phase in
            guard case .connected(let session) = phase else { return nil }
            return session
        }
    }

    /// The session for a request that makes no sense without one.
    /// - Throws: `notConnected`, `shutDown`.
    package func current(for request: Request) throws(WaybillError) -> Session {
        guard let session = connected else { throw notConnected(request) }
        return session
    }

    /// The session for a request, made first if need be; ask ``connected`` before.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - greeting: The first words, should a connection be made for it.
    /// - Returns: A session that the peer has accepted.
    /// - Throws: As ``connect(_:timeout:)``; `notConnected` when connections are made by hand only; what
    ///   `greeting` throws.
    package func session(
        for request: Request,
        greeting: () throws(WaybillError) -> Session.Greeting
    ) async throws -> Session {
        guard settings.connectsOnDemand else {
            switch phase.withLock({ $0 }) {
            case .connected(let session): return session
            case .connecting(let attempt): return try await attempt.outcome.value().session
            case .idle, .shutDown: throw notConnected(request)
            }
        }
        switch try join(greeting(), within: settings.connectTimeout) {
        case .there(let session): return session
        case .new(let attempt), .underWay(let attempt):
            return try await attempt.outcome.value().session
        }
    }

    private func notConnected(_ request: Request) -> WaybillError {
        guard case .shutDown = phase.withLock({ $0 }) else {
            return WaybillError(.notConnected, "there is no connection").about(request)
        }
        return .shutDown
    }

    // MARK: Connecting

    /// Connects.
    ///
    /// - Parameters:
    ///   - greeting: The first words.
    ///   - timeout: How long it may take; nil for the transport's own limit.
    /// - Returns: What the peer said.
    /// - Throws: `rejected` when there is a connection, or one is being made; `shutDown`;
    ///   `notConnected` when somebody disconnects meanwhile; what went wrong on the way;
    ///   `CancellationError`.
    package func connect(_ greeting: Session.Greeting, timeout: Duration?) async throws -> Receipt {
        switch try join(greeting, within: timeout ?? settings.connectTimeout) {
        case .there, .underWay:
            throw WaybillError(.rejected, "a connection is being made or is there already")
        case .new(let attempt): return try await attempt.outcome.value().receipt
        }
    }

    private enum Joined {
        case there(Session)
        case underWay(ConnectionAttempt<Session>)
        case new(ConnectionAttempt<Session>)
    }

    /// What is there, the attempt that is under way, or a new one.
    private func join(
        _ greeting: Session.Greeting,
        within timeout: Duration
    ) throws(WaybillError) -> Joined {
        let joined = try phase.withLock { phase throws(WaybillError) -> Joined in
            switch phase {
            case .connecting(let attempt): return .underWay(attempt)
            case .shutDown: throw .shutDown
            case .connected(let session): return .there(session)
            case .idle:
                let attempt = ConnectionAttempt<Session>()
                phase = .connecting(attempt)
                // Reported within the lock, so that no other change comes in between.
                states.report(.connecting(attempt: 1))
                return .new(attempt)
            }
        }
        if case .new(let attempt) = joined {
            attempt.start { [self] in
                do {
                    let made = try await failover.first { route in
                        try await make(greeting, route, within: timeout, for: attempt)
                    }
                    attempt.outcome.resolve(.success(made))
                } catch {
                    fail(attempt, error)
                }
            }
        }
        return joined
    }

    private func make(
        _ greeting: Session.Greeting,
        _ route: Failover.Route,
        within timeout: Duration,
        for attempt: ConnectionAttempt<Session>
    ) async throws -> ConnectionAttempt<Session>.Made {
        let session = try await open(route, timeout)
        // The end of the session with the host before has been heard.
        attempt.earlyEnd = nil
        do {
            let receipt = try await session.begin(greeting) {
                [weak self, weak session, weak attempt] cause in
                self?.sessionEnded(session, cause, of: attempt)
            }
            try takeOver(session, from: attempt)
            return ConnectionAttempt.Made(session: session, receipt: receipt)
        } catch {
            await session.disconnect(within: settings.closeTimeout, abandonment: nil)
            throw error
        }
    }

    private func takeOver(_ session: Session, from attempt: ConnectionAttempt<Session>) throws {
        try phase.withLock { phase in
            guard case .connecting(let current) = phase, current === attempt else {
                throw CancellationError()
            }
            phase = .connected(session)
            states.report(.connected)
            // A peer that accepts and hangs up at once may be faster than this task.
            if let end = attempt.earlyEnd {
                phase = .idle
                states.report(.disconnected(cause: end.cause))
            }
        }
    }

    private func fail(_ attempt: ConnectionAttempt<Session>, _ error: any Error) {
        let cause = error as? WaybillError
        let isShutDown = phase.withLock { phase in
            if case .shutDown = phase { return true }
            guard case .connecting(let current) = phase, current === attempt else { return false }
            phase = .idle
            states.report(.disconnected(cause: cause))
            return false
        }
        let reason = cause ?? (isShutDown ? .shutDown : attempt.stopReason)
        attempt.outcome.resolve(.failure(reason))
    }

    // MARK: The end

    private func sessionEnded(
        _ session: Session?,
        _ cause: WaybillError?,
        of attempt: ConnectionAttempt<Session>?
    ) {
        phase.withLock { phase in
            switch phase {
            case .connected(let current) where current === session:
                phase = .idle
                states.report(.disconnected(cause: cause))
            case .connecting(let current) where current === attempt:
                current.earlyEnd = .init(cause: cause)
            default: break
            }
        }
    }

    /// Ends the connection, or the attempt to make one, and waits until that is done.
    /// - Throws: `shutDown`.
    package func disconnect() async throws(WaybillError) {
        let session: Session
        switch phase.withLock({ $0 }) {
        case .idle: return
        case .shutDown: throw .shutDown
        case .connected(let current): session = current
        case .connecting(let attempt):
            await attempt.stop(
                because: WaybillError(.notConnected, "disconnected while connecting")
            )
            // It may have been done just before it was stopped.
            guard case .success(let made) = attempt.outcome.result else { return }
            session = made.session
        }
        await session.disconnect(within: settings.closeTimeout, abandonment: nil)
    }

    /// Ends everything for good and waits until nothing is left.
    ///
    /// Calls under way fail with `shutDown`. Doing it twice does nothing more.
    package func shutdown() async {
        switch shutDownPhase() {
        case .shutDown: return
        case .idle: break
        case .connecting(let attempt):
            states.report(.disconnected(cause: nil))
            await attempt.stop(because: .shutDown)
        case .connected(let session):
            states.report(.disconnected(cause: nil))
            await session.disconnect(within: settings.closeTimeout, abandonment: .shutDown)
        }
        #if os(Linux)
            SharedEventLoop.reap()
        #endif
    }

    /// Closes without waiting, when nobody refers to the transport any longer.
    package func abandon() {
        switch shutDownPhase() {
        case .idle, .shutDown: break
        case .connecting(let attempt): attempt.cancel(because: .shutDown)
        case .connected(let session): session.disconnectNow()
        }
    }

    /// Moves on to the last phase.
    /// - Returns: The phase before.
    private func shutDownPhase() -> Phase {
        phase.withLock { phase in
            defer { phase = .shutDown }
            return phase
        }
    }
}
