public import Waybill
import WaybillSession
import WireCore

/// A transport for unit tests: answers as it was told, and remembers what it was asked.
///
/// It is strict: a request without a rule fails, and is listed in ``unexpectedRequests``. Requests arrive as the last
/// interceptor left them.
///
/// ```swift
/// let mock = MockTransport(like: .mqtt5)
/// mock.expect(.connect)
/// mock.expect(.send, topic: "chat/lobby", .failure(WaybillError(.timedOut, "slow")), .success)
/// let provider = Provider<ChatEntry>(transport: mock)
/// ```
///
/// A mock that is made with `init(like:clock:)` behaves as the transport of that protocol:
///
/// - It refuses what that transport refuses, with the same error, before its rules are asked: a retained message over
///   STOMP, headers in MQTT 3.1.1, an empty topic, a wildcard in a send.
/// - It connects on demand, and after an explicit `disconnect` only when it is told to. Each CONNECT goes through the
///   interceptors of the provider, also the ones on demand and after a lost connection; ``connects`` lists them.
/// - It refuses a second `connect`.
/// - An answer that does not come in time is `timedOut`, by the mock's clock.
/// - A message of a subscription with manual acknowledgement has an id, and only a message that waits can be
///   acknowledged.
///
/// A mock without a protocol does none of this, except for the time that an entry itself allows, and for the ids.
public final class MockTransport: Transport, ImmediateTransport {
    /// The outcome of a request.
    public indirect enum Outcome: Sendable {
        /// It is confirmed.
        case receipt(Receipt)
        /// It fails.
        case failure(WaybillError)
        /// It has its outcome after a time by the mock's clock.
        case after(Duration, Outcome)
        /// It is not answered. It fails when it is cancelled, when its time is up, or when the connection drops.
        case silence
        /// A closure decides its outcome, like a server that checks a token.
        ///
        /// The closure gets the request as the interceptors left it. It is called with no lock held.
        case answer(@Sendable (Request) -> Outcome)

        /// It is confirmed.
        public static let success = Outcome.receipt(Receipt())

        /// It is confirmed with a reply.
        public static func reply(_ body: Payload, contentType: String? = nil) -> Outcome {
            let message = Message(topic: "reply", body: body, contentType: contentType)
            return .receipt(Receipt(reply: message))
        }

        /// It is confirmed with a reply in JSON.
        ///
        /// - Throws: The error of the encoder.
        public static func reply(json value: some Encodable & Sendable) throws -> Outcome {
            let encoder = JSONBodyEncoder()
            return .reply(try encoder.encode(value), contentType: encoder.contentType)
        }
    }

    /// The topics that mean more than one.
    public enum Wildcards: Sendable {
        /// `+` and `#`, in subscriptions only.
        case mqtt
        /// None: a STOMP destination has no wildcards.
        case none
    }

    private typealias Subscriptions = MockSubscriptions<MessageFeed>

    private struct State: Sendable {
        var subscriptions = Subscriptions()
        var lastNumber: UInt64 = 0
        /// The number of connections that have ended, each with all streams.
        var endCount = 0
        /// The error of the streams that ended last.
        var streamError: WaybillError?
    }

    static let disconnected = WaybillError(.notConnected, "the connection is over")

    private let rules: any MockRules
    private let peer: MockPeer
    private let link: MockLink
    private let reporter: MockReporter
    private let catchAll: CatchAll
    private let state = Locked(State())

    /// Makes a mock that expects nothing.
    ///
    /// - Parameters:
    ///   - rules: The protocol that the mock stands for.
    ///   - clock: The clock that measures delays and timeouts.
    package init(rules: any MockRules, clock: any Clock<Duration>) {
        self.rules = rules
        peer = MockPeer(rules: rules, clock: clock)
        link = MockLink(peer)
        reporter = peer.reporter
        catchAll = CatchAll(reportingTo: peer.reporter.events)
        link.onRestored { [weak self] held in for message in held { self?.deliver(message) } }
    }

    // MARK: Before

    /// Sets the outcomes of requests.
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - topic: The topic; nil covers all.
    ///   - outcomes: The outcome of the first request, of the second, and so on; the last one stays. None means success.
    ///     Of several rules that cover a request, the one added last counts.
    /// - Returns: The mock itself.
    @discardableResult
    public func expect(
        _ command: EntryCommand.Kind,
        topic: String? = nil,
        _ outcomes: Outcome...
    ) -> MockTransport {
        peer.expect(command, topic: topic, outcomes)
        return self
    }

    // MARK: Meanwhile

    /// Delivers a message to every subscription whose topic is the message's, or a filter that matches it.
    ///
    /// While the connection is interrupted, the message is held until it is back.
    ///
    /// - Returns: The number of subscriptions that it reached; 0 for a message that is held.
    @discardableResult
    public func push(_ message: Message) -> Int {
        link.hold(message) ? 0 : deliver(message)
    }

    /// Delivers a value as JSON; see ``push(_:)``.
    ///
    /// - Returns: The number of subscriptions that it reached.
    /// - Throws: The error of the encoder.
    @discardableResult
    public func push(json value: some Encodable & Sendable, topic: String) throws -> Int {
        let encoder = JSONBodyEncoder()
        return push(try encoder.encode(value), to: topic, contentType: encoder.contentType)
    }

    @discardableResult
    private func deliver(_ message: Message) -> Int {
        let copies = state.withLock { $0.subscriptions.take(message, by: rules) }
        catchAll.deliver([message])
        for (feed, message) in copies {
            report(.received(topic: message.topic, byteCount: message.body.count))
            feed.deliver([message])
        }
        return copies.count
    }

    /// Delivers a body; see ``push(_:)``.
    /// - Returns: The number of subscriptions that it reached.
    @discardableResult
    public func push(_ body: Payload, to topic: String, contentType: String? = nil) -> Int {
        push(Message(topic: topic, body: body, contentType: contentType))
    }

    /// Loses the connection: unanswered requests fail and streams end with the error.
    public func dropConnection(
        _ error: WaybillError = WaybillError(.connectionLost, "the mock dropped the connection")
    ) {
        end(failingWith: error, streams: error) { $0.drop() }
    }

    /// Loses the connection for a while, like a transport that connects again.
    ///
    /// Streams live on, unanswered requests fail, and new ones wait in the order of the calls. A request that has waited for
    /// 10 seconds by the mock's clock fails with `notConnected`.
    ///
    /// - Parameters:
    ///   - error: The reason.
    ///   - delay: The time until the next attempt in the states of the mock. ``restoreConnection()`` ends the interruption.
    public func interruptConnection(
        _ error: WaybillError = WaybillError(.connectionLost, "the mock lost the connection"),
        retryIn delay: Duration = .seconds(1)
    ) {
        let released = link.change {
            $0.interrupt()
        } noting: { _ in
            if !rules.keepsSession { state.withLock { $0.subscriptions.deliveries.removeAll() } }
            reporter.reportWaiting(for: delay, error)
        }
        released.fail(error)
        peer.failUnanswered(error)
    }

    /// Has the connection back: requests that wait go on.
    ///
    /// A mock with a protocol sends a CONNECT for it, or asks for each event stream again. Its rules and the interceptors
    /// may delay or refuse that. After an error that may pass, the connection stays away until the next call of this
    /// function. After any other error it is lost for good.
    public func restoreConnection() {
        link.restore(onLost: dropConnection, reopenStreams)
    }

    /// Has observers see an event, behind those of the mock's own.
    public func report(_ event: @autoclosure () -> TransportEvent) {
        reporter.events.report(event())
    }

    // MARK: After

    /// Every request, in order, as it left the interceptors.
    public var requests: [Request] { peer.script.requests }

    /// The requests without a rule.
    public var unexpectedRequests: [Request] { peer.script.unexpected }

    /// Every CONNECT of a mock with a protocol, in order, as it left the interceptors.
    ///
    /// Those of entries, those on demand and those after a lost connection. Event streams have no CONNECT: there, each
    /// request for a stream. A mock without a protocol notes none.
    public var connects: [Request] { peer.script.connects }

    /// The number of messages that wait for an acknowledgement by hand.
    public var unacknowledgedCount: Int { state.withLock { $0.subscriptions.deliveries.count } }

    /// The number of subscriptions that are alive.
    public var subscriptionCount: Int { state.withLock { $0.subscriptions.all.count } }

    // MARK: Transport

    /// The states: `connected` after a successful `connect`, and what ``dropConnection(_:)`` makes of it.
    public var states: ConnectionStates { reporter.states.states }

    /// The events that a transport has: those of connecting, subscribing, sending and receiving, and the ones given to
    /// ``report(_:)``.
    public var events: TransportEvents { reporter.events.events }

    /// True of a mock of event streams, which have a connection each.
    public var isConnectionless: Bool { rules.connectivity == .perStream }

    /// Gives the request the outcome of its rule.
    public func perform(_ request: Request) async throws -> Receipt {
        try check(request)
        if rules.connectivity == .shared, request.command.kind == .connect {
            return try await link.connect(request, onLost: dropConnection)
        }
        let outcome = try await admit(request)
        reporter.reportBegin(of: request)
        let receipt = try await answer(outcome, request)
        conclude(request)
        return receipt
    }

    /// Gives the request the outcome of its rule, and a stream that ``push(_:)`` feeds.
    public func subscribe(_ request: Request) async throws -> Messages<Message> {
        try check(request)
        let endCount = state.withLock { $0.endCount }
        let outcome = try await admit(request)
        if rules.connectivity == .perStream { peer.recordConnect(request) }
        _ = try await answer(outcome, request)
        return addSubscription(request, unlessEndedSince: endCount).keeping(self)
    }

    /// Every message that is pushed from now on, whether or not it reaches a subscription.
    public func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        try catchAll.listen(policy).keeping(self)
    }

    /// Ends everything.
    public func shutdown() async {
        guard end(failingWith: .shutDown, streams: nil, { $0.shutDown() }) else { return }
        peer.shutDown()
        catchAll.end()
        reporter.states.finish()
    }

    package func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission {
        guard rules.connectivity == .assumed, request.command.kind == .send, !link.isAway else {
            return .notNow
        }
        do throws(WaybillError) {
            try check(request)
            let outcome = try record(request)
            let begun = reporter.events.timestamp
            reporter.reportBegin(of: request)
            if case .receipt(var receipt) = outcome {
                receipt.topic = receipt.topic ?? request.topic
                reporter.reportSuccess(of: request, receipt, since: begun)
                completion(.success(receipt))
                return .taken(withdraw: nil)
            }
            let answering = Task { @concurrent in
                do {
                    completion(.success(try await answer(outcome, request)))
                } catch {
                    completion(.failure(error))
                }
            }
            return .taken { answering.cancel() }
        } catch {
            completion(.failure(error))
            return .taken(withdraw: nil)
        }
    }

    // MARK: Requests

    /// Refuses what a transport of the protocol refuses before any input or output.
    package func check(_ request: Request) throws(WaybillError) {
        guard !link.isShutDown else { throw .shutDown }
        try rules.check(request)
    }

    /// Lets a request pass when there is a connection, and finds its outcome.
    private func admit(_ request: Request) async throws -> Outcome {
        switch request.command.code {
        case .connect: restoreConnection()
        case .disconnect: link.change { $0.leave() }.fail(Self.disconnected)
        default:
            if let outcome = try await link.pass(request) { return outcome }
        }
        return try record(request)
    }

    private func record(_ request: Request) throws(WaybillError) -> Outcome {
        let subscriptions = state.withLock { $0.subscriptions }
        try subscriptions.check(request, by: rules)
        return try peer.record(request)
    }

    private func answer(_ outcome: Outcome, _ request: Request) async throws -> Receipt {
        let begun = reporter.events.timestamp
        do {
            let receipt = try await peer.answer(outcome, request)
            reporter.reportSuccess(of: request, receipt, since: begun)
            return receipt
        } catch {
            reporter.reportFailure(of: request, error as? WaybillError, since: begun)
            throw error
        }
    }

    /// Does what follows from a request that has succeeded.
    private func conclude(_ request: Request) {
        state.withLock { $0.subscriptions.deliveries.note(request, by: rules) }
        switch request.command.code {
        case .unsubscribe:
            end(state.withLock { $0.subscriptions.removeAll(of: request, by: rules) }, nil)
        case .disconnect where rules.connectivity != .assumed:
            end(failingWith: Self.disconnected, streams: nil, isReported: false) { $0.noteLeft() }
        default: break
        }
    }

    // MARK: Streams

    /// Adds a subscription; it ends at once if a connection has ended since the count of ends given.
    private func addSubscription(
        _ request: Request,
        unlessEndedSince endCount: Int
    ) -> Messages<Message> {
        let number = state.withLock { state in
            state.lastNumber += 1
            return state.lastNumber
        }
        let policy = request.command[.buffering] ?? BufferPolicy(.dropOldest)
        let (topic, overflow) = (request.topic, policy.overflow)
        let (messages, feed) = Messages.makeStream(
            policy: policy,
            onTermination: { [weak self] in
                guard self?.state.withLock({ $0.subscriptions.remove(number) }) != nil else {
                    return
                }
                self?.report(.subscriptionEnded(topic: topic, cause: nil))
            },
            onDrop: { [weak self] count, byteCount in
                let reason = TransportEvent.DropReason(overflow)
                self?.report(.dropped(count, byteCount: byteCount, topic: topic, reason: reason))
            }
        )
        // The interceptors are kept only for streams that are asked for again.
        var kept = request
        if rules.connectivity != .perStream { kept.chain = nil }
        let subscription = Subscriptions.Subscription(number: number, request: kept, feed: feed)
        let (isLate, error) = state.withLock { state in
            if state.endCount == endCount { state.subscriptions.add(subscription) }
            return (state.endCount != endCount, state.streamError)
        }
        if isLate { end([subscription], error) }
        return messages
    }

    /// Asks for each event stream again; one that is refused for good ends alone.
    @Sendable private func reopenStreams() async throws {
        for one in state.withLock({ $0.subscriptions.all }) {
            do {
                try await peer.reopen(one.request)
            } catch let error as WaybillError where !error.isRetryable {
                let ended = state.withLock { $0.subscriptions.remove(one.number) }
                end(ended.map { [$0] } ?? [], error)
            }
        }
    }

    private func end(_ subscriptions: [Subscriptions.Subscription], _ error: WaybillError?) {
        for one in subscriptions {
            for topic in one.request.topics {
                report(.subscriptionEnded(topic: topic.name, cause: error))
            }
            one.feed.finish(throwing: error)
        }
    }

    /// Ends a connection, and all that depended on it.
    ///
    /// - Parameters:
    ///   - error: The error of the requests that wait or are not answered.
    ///   - streamError: The error of streams, and the cause of the end; nil for an end that was asked for.
    ///   - isReported: False when the end of the connection was reported before.
    ///   - event: What happens to the connection.
    /// - Returns: False after a shutdown, when nothing is left to end.
    @discardableResult
    private func end(
        failingWith error: WaybillError,
        streams streamError: WaybillError?,
        isReported: Bool = true,
        _ event: (inout MockConnection) -> Void
    ) -> Bool {
        var ended: [Subscriptions.Subscription] = []
        let released = link.change(event) { before in
            guard before != .shutDown else { return }
            ended = state.withLock { state in
                state.endCount += 1
                state.streamError = streamError
                return state.subscriptions.removeAll()
            }
            if isReported { reporter.reportDisconnected(streamError) }
        }
        guard released.before != .shutDown else { return false }
        released.fail(error)
        peer.failUnanswered(error)
        end(ended, streamError)
        return true
    }
}

extension MockTransport: Unmirrored {}
