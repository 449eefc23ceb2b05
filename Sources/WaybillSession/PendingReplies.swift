package import Waybill
package import WaybillLink
import WireCore

/// The requests that wait for a reply, by correlation.
///
/// | state of a request | events that end the state |
/// | --- | --- |
/// | registered, with its timeout | sent over a connection → sent; timeout, or caller cancelled → over |
/// | sent | reply received; timeout; caller cancelled; connection over → over |
///
/// A request that is over leaves no state behind.
package final class PendingReplies: Sendable {
    private struct Waiter: Sendable {
        /// The number in the order of the calls.
        let number: UInt64
        let answer: Promise<Message>
        let timer: UInt64
        /// The connection over which the request was sent; nil before.
        var connection: ObjectIdentifier?
    }

    private struct State: Sendable {
        /// The waiters, by correlation.
        var waiters: [WireName: Waiter] = [:]
        var lastNumber: UInt64 = 0
        var strayCount = 0
    }

    private enum Step: Sendable {
        case sent(Receipt)
        case answered(Message)
    }

    private let state = Locked(State())
    private let environment: LinkEnvironment

    /// - Parameter environment: Provides the clock and random numbers.
    package init(in environment: LinkEnvironment) {
        self.environment = environment
    }

    /// The number of waiting requests.
    package var count: Int { state.withLock { $0.waiters.count } }

    /// The number of received messages without a waiting request: late or repeated replies, or other messages.
    package var strayCount: Int { state.withLock { $0.strayCount } }

    /// Adds the figures of replies.
    package func note(in statistics: inout TransportStatistics) {
        (statistics.awaitedReplyCount, statistics.lateReplyCount) = state.withLock {
            ($0.waiters.count, $0.strayCount)
        }
    }

    // MARK: Callers

    /// Sends a request and waits for its reply, which may arrive before `send` returns.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - timeout: The limit for sending and reply together.
    ///   - send: Sends the request with the correlation, after a call of ``noteSent(_:over:)``.
    /// - Returns: The receipt with the reply.
    /// - Throws: The errors of `send` and of ``fail(sentOver:_:)``; `timedOut`; `CancellationError`.
    package func answer(
        to request: Request,
        within timeout: Duration,
        sending send: @escaping @Sendable (_ correlation: String) async throws -> Receipt
    ) async throws -> Receipt {
        let answer = Promise<Message>()
        let correlation = register(answer, within: timeout)
        defer { forget(correlation) }
        do {
            return try await withThrowingTaskGroup(of: Step.self) { group in
                group.addTask { .sent(try await send(correlation)) }
                group.addTask { .answered(try await answer.value()) }
                // Cancels the other task when one has failed or the reply has arrived.
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

    /// Notes that a request is about to be sent over a connection.
    package func noteSent(_ correlation: String, over connection: AnyObject) {
        let identifier = ObjectIdentifier(connection)
        state.withLock { $0.waiters[correlation]?.connection = identifier }
    }

    private func register(
        _ answer: Promise<Message>,
        within timeout: Duration
    ) -> String {
        // The number makes the correlation unique; the random bits make it hard to guess.
        let bits = environment.randomWords(2).map { String($0, radix: 36) }.joined()
        let clock = environment.clock
        return state.withLock { state in
            state.lastNumber += 1
            let correlation = "\(state.lastNumber)-\(bits)"
            let timer = clock.scheduleTimer(at: clock.now.advanced(by: timeout)) { [weak self] in
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
        state.withLock { remove(correlation, &$0) }
    }

    private func remove(_ correlation: String, _ state: inout State) -> Waiter? {
        let waiter = state.waiters.removeValue(forKey: WireName(correlation))
        if let waiter { environment.clock.cancelTimer(waiter.timer) }
        return waiter
    }

    // MARK: Connections

    /// Hands a message to the waiting request, or counts it if no request waits for it.
    ///
    /// - Parameters:
    ///   - message: The message.
    ///   - limit: The limit in bytes that its body exceeds, so that the body was not kept and the request fails; nil for
    ///     a whole message.
    package func take(_ message: Message, longerThan limit: Int? = nil) {
        let waiter = state.withLock { state -> Waiter? in
            let carried = message[.correlationData]
            guard let correlation = carried.flatMap({ Payload($0).text }),
                let waiter = remove(correlation, &state)
            else {
                state.strayCount += 1
                return nil
            }
            return waiter
        }
        guard let limit else {
            waiter?.answer.resolve(.success(message))
            return
        }
        waiter?.answer.resolve(
            .failure(
                WaybillError(.limitExceeded, "the reply is longer than the limit, \(limit) bytes")
            )
        )
    }

    /// Fails requests that were sent and whose replies can no longer arrive, in the order of the calls.
    ///
    /// - Parameters:
    ///   - connection: The connection over which they were sent; nil for all.
    ///   - error: The cause.
    package func fail(sentOver connection: AnyObject? = nil, _ error: WaybillError) {
        let wanted = connection.map { ObjectIdentifier($0) }
        let waiters = state.withLock { state in
            let found = state.waiters.filter { _, waiter in
                guard let sent = waiter.connection else { return false }
                return wanted == nil || wanted == sent
            }
            let inOrder = found.sorted { $0.value.number < $1.value.number }
            return inOrder.compactMap { remove($0.key.text, &state) }
        }
        for waiter in waiters { waiter.answer.resolve(.failure(error)) }
    }
}
