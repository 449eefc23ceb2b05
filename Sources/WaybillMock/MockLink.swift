import Waybill
import WaybillSession
import WireCore

/// Carries out what ``MockConnection`` decides: runs the attempts to connect, and keeps the requests that wait.
final class MockLink: Sendable {
    fileprivate struct Attempt: Sendable {
        let number: MockConnection.Attempt
        let receipt: Promise<Receipt>
        /// The request that CONNECT is made of; nil without one.
        let greeting: Request?
        var task: Task<Void, Never>?
    }

    private struct Waiting: Sendable {
        let request: Request
        let outcome = Promise<MockTransport.Outcome>()
    }

    /// The outcomes of requests that have waited.
    private typealias Answers = [(
        Promise<MockTransport.Outcome>, Result<MockTransport.Outcome, any Error>
    )]

    /// The next step of a request.
    private enum Step: Sendable {
        case pass
        case begin(Attempt)
        case join(Attempt)
        case wait(UInt64, Waiting)
    }

    private struct State: Sendable {
        var connection = MockConnection.idle
        var attempt: Attempt?
        /// The request that the CONNECT after a lost connection is made of.
        var greeting: Request?
        var waiting: [UInt64: Waiting] = [:]
        /// The messages that were pushed while the connection was away.
        var held: [Message] = []
        var lastNumber: UInt64 = 0

        mutating func makeNumber() -> UInt64 {
            lastNumber += 1
            return lastNumber
        }
    }

    private let peer: MockPeer
    private let state = Locked(State())
    /// Delivers the messages that were held.
    private let deliver = Locked<(@Sendable ([Message]) -> Void)?>(nil)
    private var reporter: MockReporter { peer.reporter }

    init(_ peer: MockPeer) {
        self.peer = peer
    }

    var isAway: Bool { state.withLock { $0.connection.isAway } }
    var isShutDown: Bool { state.withLock { $0.connection == .shutDown } }

    // MARK: Messages

    /// Sets what becomes of held messages when the connection is back.
    func onRestored(_ deliver: @escaping @Sendable ([Message]) -> Void) {
        self.deliver.withLock { $0 = deliver }
    }

    /// Holds a message while the connection is away.
    ///
    /// - Returns: Whether it is held.
    func hold(_ message: Message) -> Bool {
        state.withLock { state in
            guard state.connection.isAway else { return false }
            state.held.append(message)
            return true
        }
    }

    private func deliverHeld() {
        let held = state.withLock { state in
            defer { state.held = [] }
            return state.held
        }
        if !held.isEmpty { deliver.withLock { $0 }?(held) }
    }

    // MARK: Requests

    /// Lets a request pass as soon as it has what it needs of the connection.
    ///
    /// - Returns: The outcome of a request that has waited: those are recorded in the order of the calls.
    /// - Throws: `notConnected` after 10 s of waiting; the error of the attempt to connect; `CancellationError`.
    func pass(_ request: Request) async throws -> MockTransport.Outcome? {
        let need = peer.rules.need(of: request)
        let step = try step(for: request, greeting: .connecting(for: request)) {
            $0.admit(need, $1)
        }
        switch step {
        case .pass: break
        case .begin(let attempt):
            start(attempt) { [peer] in try await peer.connect(attempt.greeting) }
            _ = try await attempt.receipt.value()
        case .join(let attempt): _ = try await attempt.receipt.value()
        case .wait(let number, let waiting):
            defer { state.withLock { _ = $0.waiting.removeValue(forKey: number) } }
            let late = WaybillError(.notConnected, "the connection was lost and is not back yet")
            return try await waiting.outcome
                .value(within: .seconds(10), by: peer.clock, orElse: late.about(request))
        }
        return nil
    }

    /// Connects as an entry asks for it.
    ///
    /// - Parameters:
    ///   - request: The request of the entry.
    ///   - onLost: Called when the connection was to return and is lost for good.
    /// - Returns: The receipt of CONNECT.
    /// - Throws: `alreadyConnected`; the error of the attempt; `CancellationError`.
    func connect(
        _ request: Request,
        onLost: @escaping @Sendable (WaybillError) -> Void
    ) async throws -> Receipt {
        let isReconnection = isAway
        if isReconnection { _ = try peer.record(request) }
        switch try step(for: request, greeting: request, { $0.connect($1) }) {
        case .pass, .wait: return Receipt()
        case .begin(let attempt):
            start(attempt, onLost: onLost) { [peer] in
                try await peer.connect(
                    attempt.greeting,
                    isReconnection: isReconnection,
                    isExplicit: !isReconnection
                )
            }
            return try await attempt.receipt.value()
        case .join(let attempt):
            // The interceptors of this request take the place of the earlier ones.
            state.withLock { $0.greeting = request }
            return try await attempt.receipt.value()
        }
    }

    private func step(
        for request: Request,
        greeting: Request,
        _ event: (inout MockConnection, MockConnection.Attempt) -> MockConnection.Admission
    ) throws(WaybillError) -> Step {
        try state.withLock { state throws(WaybillError) in
            let number = state.makeNumber()
            switch event(&state.connection, number) {
            case .pass: return .pass
            case .refuse(let refusal): throw refusal.error(for: request)
            case .begin: return .begin(begin(number, greeting, &state))
            case .join: return state.attempt.map(Step.join) ?? .pass
            case .wait:
                let waiting = Waiting(request: request)
                state.waiting[number] = waiting
                return .wait(number, waiting)
            }
        }
    }

    // MARK: Attempts

    private func begin(
        _ number: MockConnection.Attempt,
        _ greeting: Request?,
        _ state: inout State
    ) -> Attempt {
        let receipt = Promise<Receipt>(onAbandoned: { [weak self] in
            self?.state.withLock { $0.attempt?.number == number ? $0.attempt?.task : nil }?.cancel()
        })
        let attempt = Attempt(number: number, receipt: receipt, greeting: greeting)
        state.attempt = attempt
        state.greeting = greeting
        if peer.rules.connectivity != .assumed { reporter.states.report(.connecting(attempt: 1)) }
        return attempt
    }

    private func start(
        _ attempt: Attempt,
        onLost: @escaping @Sendable (WaybillError) -> Void = { _ in },
        _ open: @escaping @Sendable () async throws -> Receipt
    ) {
        let task = Task { @concurrent [self] in
            do {
                let receipt = try await open()
                let answers = state.withLock { state -> Answers? in
                    let conclusion = state.connection.noteSuccess(of: attempt.number)
                    guard conclusion != .stale else { return nil }
                    reporter.states.report(.connected)
                    return conclusion == .restored ? letWaitingPass(&state) : []
                }
                guard let answers else { throw MockTransport.disconnected }
                for (outcome, answer) in answers { outcome.resolve(answer) }
                deliverHeld()
                attempt.receipt.resolve(.success(receipt))
            } catch {
                noteFailure(of: attempt, error, onLost: onLost)
                attempt.receipt.resolve(.failure(error))
            }
        }
        state.withLock { if $0.attempt?.number == attempt.number { $0.attempt?.task = task } }
    }

    private func noteFailure(
        of attempt: Attempt,
        _ error: any Error,
        onLost: (WaybillError) -> Void
    ) {
        let cause = WaybillError(reporting: error)
        let conclusion = state.withLock { state in
            let conclusion = state.connection
                .noteFailure(of: attempt.number, isRetryable: cause.isRetryable)
            switch conclusion {
            case .stale, .connected, .restored, .lost: break
            case .failed:
                state.greeting = nil
                reporter.states.report(.disconnected(cause: error as? WaybillError))
            case .stillAway:
                reporter.states.report(.waiting(for: .seconds(1), cause: cause))
            }
            return conclusion
        }
        if conclusion == .lost { onLost(cause) }
    }

    // MARK: The connection

    /// Begins to have a lost connection back.
    ///
    /// - Parameters:
    ///   - onLost: Called when the connection is lost for good.
    ///   - reopen: Asks for the event streams again, which have no CONNECT.
    func restore(
        onLost: @escaping @Sendable (WaybillError) -> Void,
        _ reopen: @escaping @Sendable () async throws -> Void
    ) {
        let (attempt, answers) = state.withLock { state -> (Attempt?, Answers) in
            let number = state.makeNumber()
            guard state.connection.restore(number) else { return (nil, []) }
            let attempt = begin(number, state.greeting, &state)
            guard peer.rules.connectivity == .assumed else { return (attempt, []) }
            _ = state.connection.noteSuccess(of: number)
            reporter.reportRestored()
            return (attempt, letWaitingPass(&state))
        }
        guard let attempt else { return }
        switch peer.rules.connectivity {
        case .assumed:
            for (outcome, answer) in answers { outcome.resolve(answer) }
            deliverHeld()
        case .shared:
            start(attempt, onLost: onLost) { [peer] in
                try await peer.connect(attempt.greeting, isReconnection: true)
            }
        case .perStream:
            start(attempt, onLost: onLost) {
                try await reopen()
                return Receipt()
            }
        }
    }

    /// Records the requests that have waited, before any later one can pass.
    /// - Returns: Their outcomes. The caller resolves them with the lock open.
    private func letWaitingPass(_ state: inout State) -> Answers {
        defer { state.waiting = [:] }
        return state.waiting.valuesInKeyOrder.filter { $0.outcome.result == nil }
            .map { waiting in (waiting.outcome, Result { try peer.record(waiting.request) }) }
    }

    /// Changes the connection.
    ///
    /// - Parameters:
    ///   - event: What happens to the connection.
    ///   - note: Notes the change with the lock held, so that reports have the order of the changes. It gets the
    ///     connection before the change.
    /// - Returns: The waits that are over by that. The caller fails them.
    func change(
        _ event: (inout MockConnection) -> Void,
        noting note: (MockConnection) -> Void = { _ in }
    ) -> Released {
        state.withLock { state in
            let before = state.connection
            event(&state.connection)
            note(before)
            var released = Released(before: before)
            if !state.connection.isAway {
                state.held = []
                released.waiting = state.waiting.valuesInKeyOrder.map(\.outcome)
                state.waiting = [:]
            }
            if state.connection.attempt == nil { released.attempt = state.attempt.take() }
            if !state.connection.keepsGreeting { state.greeting = nil }
            return released
        }
    }

    /// The waits that have ended with a change of the connection.
    struct Released: Sendable {
        /// The connection before the change.
        let before: MockConnection
        fileprivate var attempt: Attempt?
        fileprivate var waiting: [Promise<MockTransport.Outcome>] = []

        func fail(_ error: WaybillError) {
            attempt?.receipt.resolve(.failure(error))
            attempt?.task?.cancel()
            for outcome in waiting { outcome.resolve(.failure(error)) }
        }
    }
}

extension MockConnection.Refusal {
    fileprivate func error(for request: Request) -> WaybillError {
        switch self {
        case .shutDown: .shutDown
        case .alreadyConnected: .alreadyConnected
        case .disconnectedByApp: .disconnectedByApp.about(request)
        case .noConnection: .noConnection.about(request)
        }
    }
}

extension MockRules {
    /// What a request other than `connect` and `disconnect` needs of the connection.
    fileprivate func need(of request: Request) -> MockConnection.Need {
        switch (connectivity, request.command.code) {
        case (.assumed, _): return .presence
        case (.perStream, _): return .nothing
        case (.shared, .ack), (.shared, .nack): return .present
        case (.shared, .unsubscribe): return .presentOrNext
        case (.shared, .connect), (.shared, .send), (.shared, .subscribe), (.shared, .disconnect):
            return .connection
        case (.shared, .other):
            return switch transaction(of: request.command) {
            case .commit, .abort: .present
            case .begin, .part, nil: .connection
            }
        }
    }
}
