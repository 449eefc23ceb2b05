public import Waybill
import WireCore

/// A transport for unit tests: answers as it was told, and remembers what it was asked.
///
/// It is strict: a request that nothing was said about fails, and is listed in ``unexpectedRequests``.
/// Requests arrive as the last interceptor left them.
///
/// ```swift
/// let mock = MockTransport()
/// mock.expect(.connect)
/// mock.expect(.send, topic: "chat/lobby", .failure(WaybillError(.timedOut, "slow")), .success)
/// let provider = Provider<ChatEntry>(transport: mock)
/// ```
public final class MockTransport: Transport {
    /// A command, without its options.
    public enum Command: String, Hashable, Sendable {
        /// One of each of ``Waybill/EntryCommand``'s cases.
        case connect, send, subscribe, unsubscribe, ack, nack, begin, commit, abort, disconnect
    }

    /// What happens to a request.
    public indirect enum Outcome: Sendable {
        /// It is confirmed.
        case receipt(Receipt)
        /// It fails.
        case failure(WaybillError)
        /// It has its outcome after a time, measured by the mock's clock.
        case after(Duration, Outcome)
        /// It is never answered: until it is cancelled, or the connection drops.
        case silence

        /// It is confirmed.
        public static let success = Outcome.receipt(Receipt())

        /// It is confirmed with a reply.
        public static func reply(_ body: Payload, contentType: String? = nil) -> Outcome {
            let message = Message(topic: "reply", body: body, contentType: contentType)
            return .receipt(Receipt(reply: message))
        }
    }

    /// Which topics mean more than one.
    public enum Wildcards: Sendable {
        /// `+` and `#`, in subscriptions only.
        case mqtt
        /// None: a STOMP destination means what it says.
        case none
    }

    private struct Rule: Sendable {
        let command: Command
        let topic: String?
        var outcomes: [Outcome]

        func covers(_ request: Request) -> Bool {
            guard command.rawValue == request.command.name else { return false }
            guard let topic else { return true }
            return request.topic?.hasSameBytes(as: topic) ?? false
        }

        /// The next outcome; the last one stays.
        mutating func next() -> Outcome {
            outcomes.count > 1 ? outcomes.removeFirst() : outcomes.first ?? .success
        }
    }

    private struct State: Sendable {
        var rules: [Rule] = []
        var requests: [Request] = []
        var unexpected: [Request] = []
        var streams: [UInt64: (filter: String, feed: MessageFeed)] = [:]
        var silent: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        var lastIdentifier: UInt64 = 0
        var isShutDown = false
    }

    private let state = Locked(State())
    private let outage = MockOutage()
    private let reporter = MockReporter()
    private let catchAll: CatchAll
    private let clock: any Clock<Duration>
    private let wildcards: Wildcards

    /// Makes a mock that expects nothing.
    ///
    /// - Parameters:
    ///   - clock: What delays are measured by.
    ///   - wildcards: Which topics mean more than one.
    public init(clock: any Clock<Duration> = ContinuousClock(), wildcards: Wildcards = .mqtt) {
        self.clock = clock
        self.wildcards = wildcards
        catchAll = CatchAll(reportingTo: reporter.events)
    }

    // MARK: Before

    /// Says what becomes of requests.
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - topic: The topic; nil covers all.
    ///   - outcomes: What happens at the first request, at the second, and so on; the last one goes on for
    ///     ever. None means success. Of several rules that cover a request, the one added last counts.
    /// - Returns: The mock itself.
    @discardableResult
    public func expect(
        _ command: Command,
        topic: String? = nil,
        _ outcomes: Outcome...
    ) -> MockTransport {
        let rule = Rule(
            command: command,
            topic: topic,
            outcomes: outcomes.isEmpty ? [.success] : outcomes
        )
        state.withLock { $0.rules.append(rule) }
        return self
    }

    // MARK: Meanwhile

    /// Delivers a message to every subscription whose topic is the message's, or a filter that matches it.
    /// - Returns: How many subscriptions it reached.
    @discardableResult
    public func push(_ message: Message) -> Int {
        let feeds = state.withLock { state in
            state.streams.valuesInKeyOrder
                .filter { TopicMatching.matches($0.filter, message.topic, wildcards) }
                .map(\.feed)
        }
        catchAll.deliver([message])
        for feed in feeds {
            report(.received(topic: message.topic, byteCount: message.body.count))
            feed.deliver([message])
        }
        return feeds.count
    }

    /// Delivers a body; see ``push(_:)``.
    /// - Returns: How many subscriptions it reached.
    @discardableResult
    public func push(_ body: Payload, to topic: String, contentType: String? = nil) -> Int {
        push(Message(topic: topic, body: body, contentType: contentType))
    }

    /// Loses the connection: unanswered requests fail and streams end with the error.
    public func dropConnection(
        _ error: WaybillError = WaybillError(.connectionLost, "the mock dropped the connection")
    ) {
        let (streams, silent) = state.withLock { state in
            defer {
                state.streams = [:]
                state.silent = [:]
            }
            return (state.streams.valuesInKeyOrder, state.silent.valuesInKeyOrder)
        }
        reporter.reportDisconnected(error)
        outage.end(throwing: error)
        for continuation in silent { continuation.resume(throwing: error) }
        end(streams, throwing: error)
    }

    /// Loses the connection for a while, as a transport does that connects again: streams live on, requests wait in the
    /// order of the calls, unanswered ones fail.
    ///
    /// A request that has waited for 10 seconds by the mock's clock fails with `notConnected`.
    ///
    /// - Parameters:
    ///   - error: Why.
    ///   - delay: How long it takes until the next attempt, as the states tell; what ends it is ``restoreConnection()``.
    public func interruptConnection(
        _ error: WaybillError = WaybillError(.connectionLost, "the mock lost the connection"),
        retryIn delay: Duration = .seconds(1)
    ) {
        outage.begin()
        let silent = state.withLock { state in
            defer { state.silent = [:] }
            return state.silent.valuesInKeyOrder
        }
        reporter.reportWaiting(until: .now + delay, error)
        for continuation in silent { continuation.resume(throwing: error) }
    }

    /// Has the connection back: what waits goes on.
    public func restoreConnection() {
        guard outage.isOn else { return }
        reporter.reportRestored()
        outage.end { try note($0) }
    }

    /// Has observers see an event, behind those of the mock's own.
    public func report(_ event: @autoclosure () -> TransportEvent) {
        reporter.events.report(event())
    }

    // MARK: After

    /// Every request, in order, as it left the interceptors.
    public var requests: [Request] { state.withLock { $0.requests } }

    /// The requests that nothing was said about.
    public var unexpectedRequests: [Request] { state.withLock { $0.unexpected } }

    /// How many subscriptions are alive.
    public var subscriptionCount: Int { state.withLock { $0.streams.count } }

    // MARK: Transport

    /// The states: `connected` after a successful `connect`, and what ``dropConnection(_:)`` makes of it.
    public var states: ConnectionStates { reporter.states.states }

    /// The events that a transport has: those of connecting, subscribing, sending and receiving, and what
    /// ``report(_:)`` adds.
    public var events: TransportEvents { reporter.events.events }

    /// Does what the rules say.
    public func perform(_ request: Request) async throws -> Receipt {
        let outcome = try await admit(request)
        let begun = reporter.events.timestamp
        reporter.reportBegin(of: request)
        do {
            let receipt = try await carryOut(outcome, request)
            reporter.reportSuccess(of: request, receipt, since: begun)
            if case .unsubscribe = request.command { endStreams(of: request.topic) }
            return receipt
        } catch {
            reporter.reportFailure(of: request, error as? WaybillError, since: begun)
            throw error
        }
    }

    /// Does what the rules say, and gives a stream that ``push(_:)`` feeds.
    public func subscribe(_ request: Request) async throws -> Messages<Message> {
        let outcome = try await admit(request)
        let begun = reporter.events.timestamp
        do {
            let receipt = try await carryOut(outcome, request)
            reporter.reportSuccess(of: request, receipt, since: begun)
        } catch {
            reporter.reportFailure(of: request, error as? WaybillError, since: begun)
            throw error
        }
        let identifier = makeIdentifier()
        var policy = BufferPolicy(.dropOldest)
        if case .subscribe(let options) = request.command { policy = options.buffering ?? policy }
        let (topic, overflow) = (request.topic, policy.overflow)
        let (messages, feed) = Messages.makeStream(
            policy: policy,
            onTermination: { [weak self] in
                let stream = self?.state.withLock { $0.streams.removeValue(forKey: identifier) }
                guard stream != nil else { return }
                self?.report(.subscriptionEnded(topic: topic, cause: nil))
            },
            onDrop: { [weak self] count, byteCount in
                let reason = TransportEvent.DropReason(overflow)
                self?.report(.dropped(count, byteCount: byteCount, topic: topic, reason: reason))
            }
        )
        state.withLock { $0.streams[identifier] = (request.topic ?? "", feed) }
        return messages.keeping(self)
    }

    /// Every message that is pushed from now on, whether or not it reaches a subscription.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        try catchAll.listen(policy).keeping(self)
    }

    /// Ends everything.
    public func shutdown() async {
        let isFirst = state.withLock { state in
            defer { state.isShutDown = true }
            return !state.isShutDown
        }
        guard isFirst else { return }
        let (streams, silent) = state.withLock { state in
            defer {
                state.streams = [:]
                state.silent = [:]
            }
            return (state.streams.valuesInKeyOrder, state.silent.valuesInKeyOrder)
        }
        reporter.reportDisconnected(nil)
        catchAll.end()
        outage.end(throwing: Self.shutDown)
        for continuation in silent { continuation.resume(throwing: Self.shutDown) }
        end(streams, throwing: nil)
    }

    // MARK: Carrying out

    private static let shutDown = WaybillError(.shutDown, "the transport was shut down")

    /// Lets a request pass when there is a connection, and finds what becomes of it.
    private func admit(_ request: Request) async throws -> Outcome {
        switch request.command {
        case .connect: restoreConnection()
        case .disconnect: outage.end(throwing: Self.disconnected)
        default:
            let outcome = try await outage.pass(request, within: .seconds(10), by: clock)
            if let outcome { return outcome }
        }
        return try note(request)
    }

    private static let disconnected = WaybillError(.notConnected, "the connection is over")

    /// Remembers a request and finds what becomes of it.
    private func note(_ request: Request) throws(WaybillError) -> Outcome {
        if wildcards == .mqtt, case .send = request.command,
            TopicMatching.hasWildcard(request.topic ?? "")
        {
            throw WaybillError(
                .invalidEntry,
                "a send goes to one topic, without wildcards",
                topic: request.topic,
                command: request.command.name
            )
        }
        let outcome: Outcome? = try state.withLock { state throws(WaybillError) in
            if state.isShutDown { throw Self.shutDown }
            // Without the interceptors, which may keep this transport alive.
            var recorded = request
            recorded.chain = nil
            state.requests.append(recorded)
            let index = state.rules.lastIndex { $0.covers(request) }
            if let index { return state.rules[index].next() }
            state.unexpected.append(recorded)
            return nil
        }
        if let outcome { return outcome }
        throw WaybillError(
            .rejected,
            "the mock was not told to expect this request",
            topic: request.topic,
            command: request.command.name
        )
    }

    private func carryOut(_ outcome: Outcome, _ request: Request) async throws -> Receipt {
        switch outcome {
        case .receipt(var receipt):
            receipt.topic = receipt.topic ?? request.topic
            return receipt
        case .failure(let error): throw error
        case .after(let delay, let outcome):
            do {
                try await clock.sleep(for: delay)
            } catch {
                throw CancellationError()
            }
            return try await carryOut(outcome, request)
        case .silence:
            try await waitForEver()
            throw CancellationError()
        }
    }

    private func waitForEver() async throws {
        let identifier = makeIdentifier()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isOver = state.withLock { state in
                    if Task.isCancelled || state.isShutDown { return true }
                    state.silent[identifier] = continuation
                    return false
                }
                if isOver { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let waiting = state.withLock { $0.silent.removeValue(forKey: identifier) }
            waiting?.resume(throwing: CancellationError())
        }
    }

    private func endStreams(of topic: String?) {
        let ended = state.withLock { state in
            let ended = state.streams.filter { _, stream in
                stream.filter.hasSameBytes(as: topic ?? "")
            }
            for key in ended.keys { state.streams[key] = nil }
            return ended.valuesInKeyOrder
        }
        end(ended, throwing: nil)
    }

    private func end(
        _ streams: [(filter: String, feed: MessageFeed)],
        throwing error: WaybillError?
    ) {
        for (filter, feed) in streams {
            report(.subscriptionEnded(topic: filter, cause: error))
            feed.finish(throwing: error)
        }
    }

    private func makeIdentifier() -> UInt64 {
        state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }
}
