import Waybill
import WaybillLink
import WireCore

/// One attempt to connect, or the attempts that follow the loss of a connection, for all who wait for them.
@usableFromInline
package final class ConnectionAttempt<Connection: Sendable>: Sendable {
    /// What comes of it.
    struct Made: Sendable {
        let connection: Connection
        /// What the peer said.
        let receipt: Receipt
    }

    /// That a connection was over before it was taken over.
    struct EarlyEnd: Sendable {
        let cause: WaybillError?
    }

    /// The task, which may be cancelled before it is there.
    private final class Work: Sendable {
        private struct State: Sendable {
            var task: Task<Void, Never>?
            var isCancelled = false
        }

        private let state = Locked(State())

        func set(_ task: Task<Void, Never>) {
            let isCancelled = state.withLock { state in
                state.task = task
                return state.isCancelled
            }
            if isCancelled { task.cancel() }
        }

        func cancel() {
            let task = state.withLock { state in
                state.isCancelled = true
                return state.task
            }
            task?.cancel()
        }
    }

    private struct State: Sendable {
        var reason: WaybillError?
        var earlyEnd: EarlyEnd?
        /// Resolves when the wait before the next try is over.
        var sleep: Promise<Void>?
        /// Why the last try has failed, or the connection before was lost.
        var failure: WaybillError?
        /// Which try it is on, from 1; 0 before the first that follows a loss.
        var number: Int
        var isWanted = false
        /// Whether a peer has taken the credentials since one refused some.
        var isAccepted = false
        /// Tells a session that is there already how to say goodbye.
        var farewell: (@Sendable (Connection) -> Void)?
    }

    /// Whether it stands in for a connection that was lost, or that is wanted without being waited for: it goes on
    /// although nobody waits for it.
    let isReconnection: Bool
    /// Whether there was no connection before it.
    let isFirst: Bool
    private let work = Work()
    private let state: Locked<State>

    /// Resolves with the session.
    ///
    /// When everybody who waited has been cancelled, so is a first attempt.
    let outcome: Promise<Made>

    /// - Parameters:
    ///   - loss: Why there is no connection any longer, or not yet; nil for an attempt that somebody waits for.
    ///   - isFirst: Whether there was none before.
    init(after loss: WaybillError? = nil, isFirst: Bool = false) {
        isReconnection = loss != nil
        self.isFirst = isFirst || loss == nil
        state = Locked(State(failure: loss, number: loss == nil ? 1 : 0))
        outcome = loss == nil ? Promise(onAbandoned: { [work] in work.cancel() }) : Promise()
    }

    /// Why it was stopped, for those who still wait.
    var stopReason: WaybillError {
        state.withLock { $0.reason }
            ?? WaybillError(.notConnected, "the attempt to connect was cancelled")
    }

    /// Whether somebody, here, wants it to have come to nothing.
    var isStopped: Bool { state.withLock { $0.reason != nil } }

    /// Whether a stream wants a connection also if this attempt, for which others wait, comes to nothing.
    var isWanted: Bool {
        get { state.withLock { $0.isWanted } }
        set { state.withLock { $0.isWanted = newValue } }
    }

    /// The end of the connection, should it have come before the attempt was done.
    var earlyEnd: EarlyEnd? {
        get { state.withLock { $0.earlyEnd } }
        set { state.withLock { $0.earlyEnd = newValue } }
    }

    /// Notes that a peer has taken the credentials.
    func noteAccepted() {
        state.withLock { $0.isAccepted = true }
    }

    /// Whether a peer has taken the credentials since the last call.
    func takeAcceptance() -> Bool {
        state.withLock { state in
            defer { state.isAccepted = false }
            return state.isAccepted
        }
    }

    /// Why the last try has failed, or the connection before was lost.
    var failure: WaybillError? {
        get { state.withLock { $0.failure } }
        set { state.withLock { $0.failure = newValue } }
    }

    /// Which try it is on, from 1; 0 before the first that follows a loss.
    var number: Int {
        get { state.withLock { $0.number } }
        set { state.withLock { $0.number = newValue } }
    }

    // MARK: Waiting between tries

    /// Notes that a wait is about to be told: ``hurry()`` counts from now on.
    ///
    /// Who hears of the wait may be faster than the task that is to wait.
    func announceSleep() {
        state.withLock { $0.sleep = Promise() }
    }

    /// Waits before the next try.
    ///
    /// - Parameters:
    ///   - deadline: Until when, unless ``hurry()`` comes first; nil for until then.
    ///   - timers: What it is measured by.
    ///   - mustWait: Whether there is need to; asked when ``hurry()`` would be heard.
    /// - Throws: `CancellationError`.
    func sleep(
        until deadline: WireInstant?,
        by timers: any TimerSource,
        if mustWait: () -> Bool = { true }
    ) async throws {
        let sleep = state.withLock { state in
            let sleep = state.sleep ?? Promise<Void>()
            state.sleep = sleep
            return sleep
        }
        guard mustWait() else { return state.withLock { $0.sleep = nil } }
        let timer = deadline.map { deadline in
            timers.scheduleTimer(at: deadline) { sleep.resolve(.success(())) }
        }
        defer {
            if let timer { timers.cancelTimer(timer) }
            state.withLock { $0.sleep = nil }
        }
        if let deadline, deadline <= timers.now { return }
        try await sleep.value()
    }

    /// Cuts the wait short, if there is one.
    func hurry() {
        state.withLock { $0.sleep }?.resolve(.success(()))
    }

    // MARK: The task

    /// Sets it going.
    func start(_ body: @escaping @Sendable () async -> Void) {
        work.set(Task { @concurrent in await body() })
    }

    /// Stops it.
    func cancel(because reason: WaybillError) {
        state.withLock { $0.reason = reason }
        work.cancel()
    }

    /// Has a session that is there already say goodbye as whoever stops the attempt wants it.
    func prepareEnd(of connection: Connection) {
        state.withLock { $0.farewell }?(connection)
    }

    /// Stops it and waits until it has cleaned up.
    ///
    /// - Parameters:
    ///   - reason: What those who wait hear.
    ///   - farewell: Tells a session that is there already how to say goodbye.
    func stop(
        because reason: WaybillError,
        preparing farewell: @escaping @Sendable (Connection) -> Void
    ) async {
        state.withLock { $0.farewell = farewell }
        cancel(because: reason)
        await outcome.settled()
    }
}
