public import Waybill
import WaybillSession
import WireCore

/// A transport for unit tests: answers as it was told, and remembers what it was asked.
///
/// It is strict: a request that nothing was said about fails, and is listed in ``unexpectedRequests``.
/// Requests arrive as the last interceptor left them.
///
/// ```swift
/// let mock = MockTransport(like: .mqtt5)
/// mock.expect(.connect)
/// mock.expect(.send, topic: "chat/lobby", .failure(WaybillError(.timedOut, "slow")), .success)
/// let provider = Provider<ChatEntry>(transport: mock)
/// ```
///
/// A mock that is made with ``init(like:clock:)`` behaves as the transport of that protocol:
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
        /// It is never answered: until it is cancelled, its time is up, or the connection drops.
        case silence
        /// It has the outcome that a closure decides, as a server does that checks a token.
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
    }

    /// Which topics mean more than one.
    public enum Wildcards: Sendable {
        /// `+` and `#`, in subscriptions only.
        case mqtt
        /// None: a STOMP destination means what it says.
        case none
    }

    struct Rule: Sendable {
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

    struct Stream: Sendable {
        var filters: [String]
        var feed: MessageFeed
        /// The request as it came, with its interceptors.
        var request: Request
        var options: SubscribeOptions
    }

    struct State: Sendable {
        var rules: [Rule] = []
        var requests: [Request] = []
        var unexpected: [Request] = []
        var connects: [Request] = []
        var silent: [UInt64: CheckedContinuation<Void, any Error>] = [:]
        /// Requests whose time was over before they waited for an answer that does not come.
        var late: Set<UInt64> = []
        var lastIdentifier: UInt64 = 0
        var streams: [UInt64: Stream] = [:]
        var deliveries = MockDeliveries()
        var isShutDown = false
        var link = MockLink.idle
        /// True between an explicit `disconnect` and the next `connect`.
        var isLeft = false
        /// What the CONNECT after a lost connection is made of.
        var greeting: Request?
        /// The attempt to have a lost connection back.
        var restoration: MockAttempt?
    }

    let state = Locked(State())
    let outage = MockOutage()
    let reporter = MockReporter()
    let rules: any MockRules
    private let catchAll: CatchAll
    let clock: any Clock<Duration>

    /// Makes a mock that expects nothing.
    ///
    /// - Parameters:
    ///   - rules: The protocol that the mock stands for.
    ///   - clock: The clock that measures delays and timeouts.
    package init(rules: any MockRules, clock: any Clock<Duration>) {
        self.rules = rules
        self.clock = clock
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
        let deliveries = state.withLock { state in
            state.streams.sorted { $0.key < $1.key }
                .filter { _, stream in
                    stream.filters.contains {
                        rules.matches($0, message.topic)
                    }
                }
                .map { number, stream in
                    var copy = message
                    if rules.waitsForAcknowledgement(stream.options) {
                        let isCumulative = stream.options.ackMode == .client
                        state.deliveries.hold(&copy, of: number, isCumulative: isCumulative)
                    }
                    return (stream.feed, copy)
                }
        }
        catchAll.deliver([message])
        for (feed, message) in deliveries {
            report(.received(topic: message.topic, byteCount: message.body.count))
            feed.deliver([message])
        }
        return deliveries.count
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
                state.noteConnectionEnd(error)
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
            // STOMP has no session that outlives a connection.
            if !rules.keepsSession { state.deliveries.removeAll() }
            return state.silent.valuesInKeyOrder
        }
        reporter.reportWaiting(until: .now + delay, error)
        for continuation in silent { continuation.resume(throwing: error) }
    }

    /// Has the connection back: what waits goes on.
    ///
    /// A mock with a protocol sends a CONNECT for it, or asks for each event stream again, which its rules and the
    /// interceptors may delay or refuse. After an error that another attempt may mend, the connection stays away until
    /// this is called again; after any other error it is lost for good.
    public func restoreConnection() {
        guard outage.isOn else { return }
        guard rules.connectivity == .assumed else {
            _ = reconnect()
            return
        }
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

    /// Every CONNECT of a mock with a protocol, in order, as it left the interceptors.
    ///
    /// Those of entries, those on demand and those after a lost connection. Event streams have no CONNECT: there, each
    /// request for a stream. A mock without a protocol notes none.
    public var connects: [Request] { state.withLock { $0.connects } }

    /// How many messages wait for an acknowledgement by hand.
    public var unacknowledgedCount: Int { state.withLock { $0.deliveries.count } }

    /// How many subscriptions are alive.
    public var subscriptionCount: Int { state.withLock { $0.streams.count } }

    // MARK: Transport

    /// The states: `connected` after a successful `connect`, and what ``dropConnection(_:)`` makes of it.
    public var states: ConnectionStates { reporter.states.states }

    /// The events that a transport has: those of connecting, subscribing, sending and receiving, and what
    /// ``report(_:)`` adds.
    public var events: TransportEvents { reporter.events.events }

    /// True of a mock of event streams, which have a connection each.
    public var isConnectionless: Bool { rules.connectivity == .perStream }

    /// Does what the rules say.
    public func perform(_ request: Request) async throws -> Receipt {
        try check(request)
        if rules.connectivity == .shared, case .connect = request.command {
            return try await connect(request)
        }
        let outcome = try await admit(request)
        let begun = reporter.events.timestamp
        reporter.reportBegin(of: request)
        do {
            let receipt = try await carryOut(outcome, request)
            reporter.reportSuccess(of: request, receipt, since: begun)
            conclude(request)
            return receipt
        } catch {
            reporter.reportFailure(of: request, error as? WaybillError, since: begun)
            throw error
        }
    }

    /// What a request that has succeeded leaves behind.
    private func conclude(_ request: Request) {
        state.withLock { $0.deliveries.note(request) }
        switch request.command {
        case .unsubscribe: endStreams(of: request.topic)
        case .disconnect where rules.connectivity != .assumed:
            let (streams, silent) = state.withLock { state in
                defer {
                    state.streams = [:]
                    state.silent = [:]
                    state.noteConnectionEnd(Self.disconnected)
                }
                return (state.streams.valuesInKeyOrder, state.silent.valuesInKeyOrder)
            }
            for continuation in silent { continuation.resume(throwing: Self.disconnected) }
            end(streams, throwing: nil)
        default: break
        }
    }

    /// Does what the rules say, and gives a stream that ``push(_:)`` feeds.
    public func subscribe(_ request: Request) async throws -> Messages<Message> {
        try check(request)
        let outcome = try await admit(request)
        if rules.connectivity == .perStream { noteConnect(request) }
        let begun = reporter.events.timestamp
        do {
            let receipt = try await carryOut(outcome, request)
            reporter.reportSuccess(of: request, receipt, since: begun)
        } catch {
            reporter.reportFailure(of: request, error as? WaybillError, since: begun)
            throw error
        }
        let identifier = makeIdentifier()
        var options = SubscribeOptions()
        if case .subscribe(let stated) = request.command { options = stated }
        let policy = options.buffering ?? BufferPolicy(.dropOldest)
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
        state.withLock { state in
            // The interceptors are kept only for streams that are asked for again.
            var kept = request
            if rules.connectivity != .perStream { kept.chain = nil }
            state.streams[identifier] = Stream(
                filters: request.topics,
                feed: feed,
                request: kept,
                options: options
            )
        }
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
                state.noteConnectionEnd(Self.shutDown)
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

    static let shutDown = WaybillError.shutDown

    /// Refuses what a transport of the protocol refuses before any input or output.
    private func check(_ request: Request) throws(WaybillError) {
        guard !state.withLock({ $0.isShutDown }) else { throw Self.shutDown }
        try rules.check(request)
    }

    /// Lets a request pass when there is a connection, and finds what becomes of it.
    private func admit(_ request: Request) async throws -> Outcome {
        switch request.command {
        case .connect: restoreConnection()
        case .disconnect:
            outage.end(throwing: Self.disconnected)
            if rules.connectivity == .shared { state.withLock { $0.isLeft = true } }
        default:
            try checkConnection(for: request)
            if rules.connectivity != .perStream {
                let outcome = try await outage.pass(request, within: .seconds(10), by: clock)
                if let outcome { return outcome }
            }
            try await connectOnDemand(for: request)
        }
        return try note(request)
    }

    static let disconnected = WaybillError(.notConnected, "the connection is over")

    private func endStreams(of topic: String?) {
        let ended = state.withLock { state in
            let ended = state.streams.filter { _, stream in
                stream.filters.contains { $0.hasSameBytes(as: topic ?? "") }
            }
            for key in ended.keys { state.streams[key] = nil }
            return ended.valuesInKeyOrder
        }
        end(ended, throwing: nil)
    }

    func end(_ streams: [Stream], throwing error: WaybillError?) {
        for stream in streams {
            for filter in stream.filters {
                report(.subscriptionEnded(topic: filter, cause: error))
            }
            stream.feed.finish(throwing: error)
        }
    }

    func makeIdentifier() -> UInt64 {
        state.withLock { state in
            state.lastIdentifier += 1
            return state.lastIdentifier
        }
    }
}
