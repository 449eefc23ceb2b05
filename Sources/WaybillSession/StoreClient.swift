import Dispatch
package import Waybill
package import WaybillLink
import WireCore

/// Gives messages to a store, and waits for its answers; each wait has a bound, because a disk may hang.
///
/// What becomes of a message when the store answers after the call has ended:
///
/// | the call has ended by | the message, if it was stored |
/// | --- | --- |
/// | its time limit, or a cancellation | is removed |
/// | the shutdown of the transport | stays for the next transport |
/// | the shutdown, and the session is discarded | is removed |
///
/// After the shutdown a call fails with `shutDown`, and the store is not asked.
package final class StoreClient: Sendable {
    private struct State: Sendable {
        var waits: StoreWaits
        /// Whether the transport is shut down, so that no further call asks the store.
        var isShutDown = false
        /// The timer for the earliest deadline, and that deadline.
        ///
        /// It is left running after the store's answer: a timer for each message costs more.
        var timer: (token: UInt64, deadline: WireInstant)?
    }

    /// What a call has begun.
    private struct Begun: Sendable {
        let number: UInt64
        /// Asks the store to forget the message.
        let withdraw: @Sendable () -> Void
    }

    // Twice the 4,096 messages and 4 MiB of one transaction of `SQLiteSessionStore`. All messages of a transaction may be
    // late for as long as a healthy write takes. Other sends go on meanwhile.
    private static let leastMessageLimit = 8_192
    private static let leastByteLimit = 8 << 20

    package let store: any SessionStore
    private let immediate: (any ImmediateSessionStore)?
    private let clock: any TimerSource
    private let state: Locked<State>

    /// - Parameters:
    ///   - store: The store.
    ///   - clock: The clock of the time limits.
    ///   - policy: Its limits are those of the messages for which the store answers late, unless they are less than 8,192
    ///     messages or 8 MiB.
    package init(_ store: any SessionStore, by clock: any TimerSource, _ policy: OfflinePolicy) {
        self.store = store
        immediate = store as? any ImmediateSessionStore
        self.clock = clock
        let waits = StoreWaits(
            messageLimit: max(policy.messageLimit, Self.leastMessageLimit),
            byteLimit: max(policy.byteLimit, Self.leastByteLimit)
        )
        state = Locked(State(waits: waits))
    }

    /// Stores a message.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - limit: The longest wait.
    ///   - isDiscarded: Whether no message stays stored; asked when the store answers late.
    /// - Returns: The number of the message.
    /// - Throws: `timedOut` after the limit; `shutDown` at the shutdown and after it; `limitExceeded` if the store refuses
    ///   the message, with its error as `underlying`, or if it has not answered for too many others; `CancellationError`.
    package func add(
        _ message: StoredMessage,
        within limit: Duration,
        isDiscarded: @escaping @Sendable () -> Bool
    ) async throws -> StoredMessage.ID {
        let call = StoreCall()
        let begun = Locked<Begun?>(nil)
        do {
            return try await call.answer(
                sending: { () throws(WaybillError) in
                    let number = try begin(call, message.byteCount, within: limit)
                    let withdraw = give(message) { result in
                        self.end(number, call, result, isDiscarded)
                    }
                    begun.withLock { $0 = Begun(number: number, withdraw: withdraw) }
                },
                withdrawing: { _ in }
            )
        } catch {
            if let begun = begun.withLock({ $0 }) {
                state.withLock { $0.waits.abandon(begun.number) }
                if !Self.staysStored(call) { begun.withdraw() }
            }
            throw error
        }
    }

    private func begin(
        _ call: StoreCall,
        _ byteCount: Int,
        within limit: Duration
    ) throws(WaybillError) -> UInt64 {
        let deadline = clock.now.advanced(by: limit)
        return try state.withLock { state throws(WaybillError) in
            guard !state.isShutDown else { throw .shutDown }
            let number = state.waits.begin(call, byteCount: byteCount, deadline: deadline)
            guard let number else { throw Self.overflow }
            watch(&state)
            return number
        }
    }

    /// Gives the store a message.
    ///
    /// - Returns: Asks the store to forget it.
    private func give(
        _ message: StoredMessage,
        _ done: @escaping @Sendable (Result<StoredMessage.ID, any Error>) -> Void
    ) -> @Sendable () -> Void {
        if let immediate { return immediate.add(message, done: done) }
        let adding = Task { @concurrent [store] in
            let result: Result<StoredMessage.ID, any Error>
            do { result = .success(try await store.add(message)) } catch {
                result = .failure(error)
            }
            done(result)
        }
        return { adding.cancel() }
    }

    /// Takes the store's answer.
    private func end(
        _ number: UInt64,
        _ call: StoreCall,
        _ result: Result<StoredMessage.ID, any Error>,
        _ isDiscarded: @Sendable () -> Bool
    ) {
        state.withLock { $0.waits.end(number) }
        if let caller = call.resolve(result.mapError(Self.refusal)) { return caller.resume() }
        // The call has ended before.
        guard let id = try? result.get() else { return }
        if !Self.staysStored(call) || isDiscarded() { store.remove(id) }
    }

    /// Sets the timer for the earliest deadline, unless it is set.
    private func watch(_ state: inout State) {
        guard let next = state.waits.earliestDeadline else { return }
        if let timer = state.timer {
            guard next < timer.deadline else { return }
            clock.cancelTimer(timer.token)
        }
        let token = clock.scheduleTimer(at: next) { [weak self] in self?.expire(next) }
        state.timer = (token, next)
    }

    /// Ends the calls whose deadlines have passed.
    ///
    /// - Parameter deadline: The time of the timer; the clock may lag behind by a little.
    private func expire(_ deadline: WireInstant) {
        let expired = state.withLock { state in
            if state.timer?.deadline == deadline { state.timer = nil }
            let expired = state.waits.takeExpired(at: max(clock.now, deadline))
            watch(&state)
            return expired
        }
        for call in expired { call.fail(Self.timedOut) }
    }

    /// Ends the calls that wait, because the transport is shut down, and refuses those that follow.
    package func shutDown() {
        let calls = state.withLock { state in
            state.isShutDown = true
            if let timer = state.timer.take() { clock.cancelTimer(timer.token) }
            return state.waits.takeExpired(at: WireInstant(nanoseconds: .max))
        }
        for call in calls { call.fail(Self.shutDownMeanwhile) }
    }

    /// Waits until the store has written all earlier changes, also in a task that is cancelled.
    ///
    /// - Parameter timeout: The longest wait.
    /// - Returns: The number of changes that are not written, if the store knows it, and the reason; nil if all are.
    package func flush(within timeout: Duration) async -> (count: Int?, error: WaybillError)? {
        guard immediate?.unwrittenCount != 0 else { return nil }
        let flushed = Promise<Void>()
        flushed.resolve { [store] in try await store.flush() }
        await flushed.waitUntilResolved(within: timeout, by: clock) {
            flushed.resolve(.failure(Self.notWritten(nil)))
        }
        do {
            try flushed.result?.get()
            return nil
        } catch {
            let count = immediate?.unwrittenCount
            guard count != 0 else { return nil }
            return (count, error as? WaybillError ?? Self.notWritten(error))
        }
    }

    /// Waits as ``flush(within:)`` does, and reports what is not written then.
    package func flush(within timeout: Duration, reportingTo events: TransportEventSource) async {
        guard let (count, error) = await flush(within: timeout) else { return }
        events.report(.storeIncomplete(count, error: error))
    }

    /// Returns the removal of a stored message that the peer has acknowledged; nil for one that is not stored.
    package func removal(of number: UInt64?) -> (@Sendable () -> Void)? {
        number.map { number in { @Sendable [store] in store.remove(number) } }
    }

    /// Empties the store; a store that hangs goes on with it after the timeout.
    package func removeAll(within timeout: Duration) async {
        let removal = Promise<Void>()
        // Not on a thread for tasks: there are few, and the store may block it.
        DispatchQueue(label: "waybill.store").async { [store] in
            store.removeAll()
            removal.resolve(.success(()))
        }
        await removal.waitUntilResolved(within: timeout, by: clock) {
            removal.resolve(.success(()))
        }
    }

    /// Whether a message stays stored although its call has ended.
    private static func staysStored(_ call: StoreCall) -> Bool {
        guard case .failure(let error as WaybillError) = call.outcome else { return false }
        return error.code == .shutDown
    }

    // MARK: Errors

    private static func refusal(_ error: any Error) -> any Error {
        WaybillError(
            .limitExceeded,
            "the message could not be stored: nothing was sent",
            underlying: error
        )
    }

    private static var overflow: WaybillError {
        WaybillError(
            .limitExceeded,
            "the store has not answered for too many messages: nothing was stored or sent"
        )
    }

    private static var timedOut: WaybillError {
        WaybillError(
            .timedOut,
            """
            the store did not answer in time: nothing was sent, and it is not known whether the message was stored; \
            the next process sends it if this one ends first
            """
        )
    }

    private static var shutDownMeanwhile: WaybillError {
        WaybillError(
            .shutDown,
            "the transport was shut down before the store answered: it is not known whether the message was stored"
        ).arriving(true)
    }

    // With the store's error; nil after the timeout.
    private static func notWritten(_ error: (any Error)?) -> WaybillError {
        WaybillError(
            error == nil ? .timedOut : .limitExceeded,
            "the store has not written everything: the next process may send acknowledged messages again",
            underlying: error
        )
    }
}
