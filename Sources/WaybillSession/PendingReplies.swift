package import Waybill
package import WaybillLink
import WireCore

/// Requests whose answers come as messages: who waits for which.
///
/// | a request | and then |
/// | --- | --- |
/// | is registered, with its time | is sent over a connection; its time is up, or its caller gone → over |
/// | is sent | its answer comes; its time is up; no answer can come any more → over |
///
/// Whatever ends it, nothing of it stays.
package final class PendingReplies: Sendable {
    private struct Waiter: Sendable {
        /// Its place in the order of the calls.
        let number: UInt64
        let answer: Promise<Message>
        let timer: UInt64
        /// The connection over which it went; nil before.
        var connection: ObjectIdentifier?
    }

    private struct State: Sendable {
        /// By what the answers carry.
        var waiters: [WireName: Waiter] = [:]
        var lastNumber: UInt64 = 0
        var strayCount = 0
        /// The clock, while somebody waits.
        var timers: (any TimerSource)?

        mutating func remove(_ correlation: String) -> Waiter? {
            guard let waiter = waiters.removeValue(forKey: WireName(correlation)) else {
                return nil
            }
            timers?.cancelTimer(waiter.timer)
            return waiter
        }

        /// Takes the clock out, if nobody waits any longer.
        mutating func idleTimers() -> (any TimerSource)? {
            guard waiters.isEmpty else { return nil }
            defer { timers = nil }
            return timers
        }
    }

    private enum Step: Sendable {
        case sent(Receipt)
        case answered(Message)
    }

    private let state = Locked(State())
    private let environment: LinkEnvironment

    /// - Parameter environment: Where clocks and dice come from.
    package init(in environment: LinkEnvironment) {
        self.environment = environment
    }

    /// How many requests wait.
    package var count: Int { state.withLock { $0.waiters.count } }

    /// How many messages came that nobody waited for: late, repeated, or no answers at all.
    package var strayCount: Int { state.withLock { $0.strayCount } }

    // MARK: Callers

    /// Sends a request and waits for its answer, which may come before the sending is done.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - timeout: How long all of it may take.
    ///   - send: Sends it with what its answer has to carry, which it notes by ``noteSent(_:over:)`` before.
    /// - Returns: The receipt with the answer in it.
    /// - Throws: What `send` throws; `timedOut`; what ``fail(sentOver:_:)`` is given; `CancellationError`.
    package func answer(
        to request: Request,
        within timeout: Duration,
        sending send: @escaping @Sendable (_ correlation: String) async throws -> Receipt
    ) async throws -> Receipt {
        let answer = Promise<Message>()
        let correlation = try register(answer, within: timeout)
        defer { forget(correlation) }
        do {
            return try await withThrowingTaskGroup(of: Step.self) { group in
                group.addTask { .sent(try await send(correlation)) }
                group.addTask { .answered(try await answer.value()) }
                // Whoever is left when it is over is cancelled.
                defer { group.cancelAll() }
                var receipt = Receipt(of: request.topic)
                while let step = try await group.next() {
                    switch step {
                    case .sent(let confirmation): receipt = confirmation
                    case .answered(let message):
                        receipt.reply = message
                        return receipt
                    }
                }
                throw CancellationError()
            }
        } catch let error as WaybillError {
            throw error.about(request)
        }
    }

    /// Notes that a request is about to go over a connection.
    package func noteSent(_ correlation: String, over connection: AnyObject) {
        let identifier = ObjectIdentifier(connection)
        state.withLock { $0.waiters[correlation]?.connection = identifier }
    }

    private func register(
        _ answer: Promise<Message>,
        within timeout: Duration
    ) throws(WaybillError) -> String {
        // The number makes it the only one, the bits make it nobody's guess.
        let bits = environment.randomWords(2).map { String($0, radix: 36) }.joined()
        return try state.withClock(\.timers, environment.makeTimers) {
            state,
            timers throws(WaybillError) in
            state.lastNumber += 1
            let correlation = "\(state.lastNumber)-\(bits)"
            let timer = timers.scheduleTimer(at: timers.now.advanced(by: timeout)) { [weak self] in
                self?.expire(correlation)
            }
            state.waiters[correlation] = Waiter(
                number: state.lastNumber,
                answer: answer,
                timer: timer
            )
            return correlation
        }
    }

    private func expire(_ correlation: String) {
        let waiter = forget(correlation)
        waiter?.answer.resolve(.failure(WaybillError(.timedOut, "no answer came in time")))
    }

    @discardableResult
    private func forget(_ correlation: String) -> Waiter? {
        let (waiter, timers) = state.withLock { state in
            (state.remove(correlation), state.idleTimers())
        }
        timers?.invalidate()
        return waiter
    }

    // MARK: Connections

    /// Hands a message to the one who waits for it; what nobody waits for is counted.
    package func take(_ message: Message) {
        let (waiter, timers) = state.withLock { state -> (Waiter?, (any TimerSource)?) in
            let carried = message.details?.correlationData
            guard let correlation = carried.flatMap({ Payload($0).text }),
                let waiter = state.remove(correlation)
            else {
                state.strayCount += 1
                return (nil, nil)
            }
            return (waiter, state.idleTimers())
        }
        timers?.invalidate()
        waiter?.answer.resolve(.success(message))
    }

    /// Fails requests that were sent and whose answers cannot come any more, in the order of the calls.
    ///
    /// - Parameters:
    ///   - connection: The connection over which they went; nil for all.
    ///   - error: Why.
    package func fail(sentOver connection: AnyObject? = nil, _ error: WaybillError) {
        let wanted = connection.map { ObjectIdentifier($0) }
        let (waiters, timers) = state.withLock { state in
            let found = state.waiters.filter { _, waiter in
                guard let sent = waiter.connection else { return false }
                return wanted == nil || wanted == sent
            }
            let inOrder = found.sorted { $0.value.number < $1.value.number }
            return (inOrder.compactMap { state.remove($0.key.text) }, state.idleTimers())
        }
        timers?.invalidate()
        for waiter in waiters { waiter.answer.resolve(.failure(error)) }
    }
}
