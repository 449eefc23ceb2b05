import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The authentication exchanges of one connection: asks the app's exchange, and gives its answers to the core.
///
/// The core decides whose turn it is, so at most one task runs at a time. The app's code runs in that task, without a
/// lock.
final class MQTTAuthentication: Sendable {
    private struct State: Sendable {
        /// The app's exchange; nil while a task has it, and between exchanges.
        var exchange: (any MQTTAuthenticationExchange)?
        var task: Task<Void, Never>?
        /// The data of CONNECT, until it is sent.
        var firstData: [UInt8]?
        /// The re-authentication that is under way; nil without one.
        var repetition: Repetition?
        /// The error because of which this side closes the connection.
        var failure: WaybillError?
        var isOver = false
    }

    /// A begun exchange, with its first data.
    struct Opening: Sendable {
        let exchange: any MQTTAuthenticationExchange
        let data: [UInt8]?
        let properties: MQTTAuthProperties
    }

    /// A re-authentication.
    private struct Repetition: Sendable {
        /// Resolves with its first data, or with the end of the connection.
        let opening = Promise<Opening>()
        /// Resolves with its end.
        let done = Promise<Void>()
        /// The time limit of the whole, the verification of the server included.
        let deadline: WireInstant
    }

    let method: String
    private let authenticator: any MQTTAuthenticator
    private let context: MQTTAuthenticationContext
    private let state: Locked<State>

    private init(
        _ authenticator: any MQTTAuthenticator,
        _ context: MQTTAuthenticationContext,
        _ opening: Opening
    ) {
        self.authenticator = authenticator
        self.context = context
        method = authenticator.method
        state = Locked(State(exchange: opening.exchange, firstData: opening.data))
    }

    /// Begins the exchange of a new connection.
    ///
    /// - Parameters:
    ///   - authenticator: The app's method.
    ///   - environment: The clock, and the source of nonces.
    ///   - host: The host that will be connected to.
    ///   - timeout: The time limit.
    /// - Returns: The exchange, with the data for CONNECT.
    /// - Throws: `timedOut`; the app's error, see ``error(_:isVerification:)``; `CancellationError`.
    static func begin(
        _ authenticator: any MQTTAuthenticator,
        in environment: LinkEnvironment,
        to host: String,
        within timeout: Duration
    ) async throws -> MQTTAuthentication {
        var context = MQTTAuthenticationContext(host: host)
        context.random = environment.random
        let opening = try await open(
            authenticator,
            context,
            within: timeout,
            by: environment.clock
        )
        return MQTTAuthentication(authenticator, context, opening)
    }

    private static func open(
        _ authenticator: any MQTTAuthenticator,
        _ context: MQTTAuthenticationContext,
        within timeout: Duration,
        by clock: any TimerSource,
        into opening: Promise<Opening> = Promise()
    ) async throws -> Opening {
        // A task of its own, because the app's code may ignore a cancellation.
        let task = opening.resolve {
            do {
                var exchange = try await authenticator.makeExchange(context)
                let data = try await exchange.begin()
                return Opening(exchange: exchange, data: data, properties: exchange.properties)
            } catch {
                throw Self.error(error, isVerification: false)
            }
        }
        defer { task.cancel() }
        guard let begun = try await opening.value(within: timeout, by: clock) else {
            throw WaybillError(.timedOut, "the authenticator did not begin in time")
        }
        return begun
    }

    /// Adds the method and the first data to the CONNECT.
    func complete(_ packet: MQTTConnect) -> MQTTConnect {
        var packet = packet
        packet.properties.authenticationMethod = method
        packet.properties.authenticationData = state.withLock { $0.firstData.take() }
        return packet
    }

    // MARK: Steps

    /// Answers data of the server.
    func respond(to challenge: MQTTProperties, over connection: MQTTConnection) {
        run(over: connection) { exchange in
            exchange.receive(MQTTAuthProperties(challenge))
            let data = try await exchange.respond(to: challenge.authenticationData)
            return (data, exchange.properties.wire)
        } then: { data, explanation in
            try connection.driver.withCore(.immediate) { core, now throws(MQTTSendError) in
                guard !core.isFinished else { return }
                try core.authenticate(data, explaining: explanation, at: now)
            }
        }
    }

    /// Verifies the server of a new connection, which is not read from until then.
    func verify(_ connack: MQTTProperties, over connection: MQTTConnection) {
        connection.driver.setReading(false)
        run(over: connection, isVerification: true) { exchange in
            try await exchange.finish(with: connack.authenticationData)
        } then: {
            connection.driver.withCore(.immediate) { core, now in core.acceptServer(at: now) }
        }
    }

    /// Ends a re-authentication that the server has accepted.
    ///
    /// The app's code has the rest of the time for it. The core has no time limit left.
    func finish(_ last: MQTTProperties, over connection: MQTTConnection) {
        let clock = connection.clock
        let deadline = state.withLock { $0.repetition?.deadline } ?? clock.now
        let timer = clock.scheduleTimer(at: deadline) {
            [weak self, weak connection] in
            guard let self, let connection else { return }
            let error = WaybillError(.timedOut, "the server was not verified in time")
            fail(error, over: connection)
        }
        run(over: connection, isVerification: true) { exchange in
            exchange.receive(MQTTAuthProperties(last))
            try await exchange.finish(with: last.authenticationData)
        } then: { [self] in
            clock.cancelTimer(timer)
            state.withLock { $0.repetition.take() }?.done.resolve(.success(()))
        }
    }

    /// Runs one step of the app's exchange in a task.
    private func run<Answer: Sendable>(
        over connection: MQTTConnection,
        isVerification: Bool = false,
        _ step:
            @escaping @Sendable (inout any MQTTAuthenticationExchange) async throws -> Answer,
        then: @escaping @Sendable (Answer) throws -> Void
    ) {
        // Begun under the lock, so that the end of the connection cancels this task and no earlier one.
        state.withLock { state in
            guard !state.isOver, let begun = state.exchange.take() else { return }
            state.task = Task { @concurrent in
                var exchange = begun
                do {
                    let answer = try await step(&exchange)
                    // Before the answer, which the server may answer at once.
                    note(isVerification ? nil : exchange)
                    try then(answer)
                } catch let error as MQTTSendError {
                    let request = Request(topic: nil, command: .connect)
                    fail(MQTTErrorMapping.error(error, request), over: connection)
                } catch {
                    fail(Self.error(error, isVerification: isVerification), over: connection)
                }
            }
        }
    }

    private func note(_ exchange: (any MQTTAuthenticationExchange)?) {
        state.withLock { $0.exchange = exchange }
    }

    /// Closes the connection because of an error of this side.
    private func fail(_ error: WaybillError, over connection: MQTTConnection) {
        let (isOver, isRepetition) = state.withLock { state in
            if state.failure == nil { state.failure = error }
            return (state.isOver, state.repetition != nil)
        }
        guard !isOver else { return }
        connection.abandonAuthentication(error, isRepetition: isRepetition)
    }

    /// The error of the app's code.
    private static func error(_ error: any Error, isVerification: Bool) -> WaybillError {
        if let error = error as? WaybillError { return error }
        return isVerification
            ? WaybillError(.unauthorized, "the server was not verified", underlying: error)
            : WaybillError(.interceptorFailed, "the authenticator failed", underlying: error)
    }

    // MARK: Again

    /// Authenticates an open connection anew.
    ///
    /// - Throws: `rejected` during another re-authentication; `timedOut`; the app's error; the error of the connection's
    ///   end; `CancellationError`. If AUTH was sent, the exchange then continues without the caller.
    func repeatExchange(over connection: MQTTConnection, within timeout: Duration) async throws {
        let repetition = Repetition(deadline: connection.now.advanced(by: timeout))
        let (isOver, isFirst) = state.withLock { state in
            let isFirst = state.repetition == nil
            if isFirst, !state.isOver { state.repetition = repetition }
            return (state.isOver, isFirst)
        }
        guard !isOver else { throw WaybillError.noConnection }
        guard isFirst else {
            throw WaybillError(.rejected, "a re-authentication is under way already")
        }
        do {
            var context = context
            context.isReauthentication = true
            let opening = try await Self.open(
                authenticator,
                context,
                within: timeout,
                by: connection.clock,
                into: repetition.opening
            )
            note(opening.exchange)
            do throws(MQTTSendError) {
                try connection.driver.withCore(.immediate) { core, now throws(MQTTSendError) in
                    let timeLeft = max(now.duration(to: repetition.deadline), .zero)
                    try core.reauthenticate(
                        opening.data,
                        explaining: opening.properties.wire,
                        timeout: timeLeft,
                        at: now
                    )
                }
            } catch {
                // The end of the connection follows, with its error.
                if case .notConnected = error { return try await repetition.done.value() }
                throw MQTTErrorMapping.error(error, Request(topic: nil, command: .connect))
            }
        } catch {
            state.withLock { $0.repetition = nil }
            throw error
        }
        try await repetition.done.value()
    }

    /// Ends all exchanges with the connection, which requests no longer use.
    ///
    /// - Parameter cause: Why; nil if this side has disconnected.
    func end(_ cause: WaybillError?) {
        let (task, repetition, failure) = state.withLock { state in
            state.isOver = true
            state.exchange = nil
            return (state.task.take(), state.repetition.take(), state.failure)
        }
        task?.cancel()
        let error =
            failure ?? cause ?? WaybillError(.notConnected, "disconnected while authenticating")
        repetition?.opening.resolve(.failure(error))
        repetition?.done.resolve(.failure(error))
    }
}
