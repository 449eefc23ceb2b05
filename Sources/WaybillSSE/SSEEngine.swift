import HTTPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// What an event stream transport does with requests.
final class SSEEngine: Sendable {
    private struct State: Sendable {
        /// The streams by number, in the order of their subscriptions.
        var streams: [UInt64: SSEStream] = [:]
        var lastStream: UInt64 = 0
        var isShutDown = false
        var isPaused = false
    }

    let configuration: SSEConfiguration
    let links: HTTPLinks
    let states = SSEStates()
    let events: TransportEventSource
    /// The listeners to all messages.
    let catchAll: CatchAll
    /// The observers of response heads and comments.
    let observers: SSEObservers
    let check: SSERequestCheck
    /// The number of streams that a server has begun.
    let openedCount = Locked(0)
    /// Stores sends until they are answered; nil without a store.
    let outbox: Outbox?
    private let left: SSELeftMessages?
    private let state = Locked(State())
    private let pool: HTTPPool
    private let hints = HintListener()

    /// - Parameters:
    ///   - base: The URL of the transport.
    ///   - configuration: The configuration.
    ///   - links: Makes connections.
    ///   - stored: The store, and what an earlier process has left in it; nil without one.
    init(
        base: HTTPTarget,
        configuration: SSEConfiguration,
        links: HTTPLinks,
        stored: (store: any SessionStore, messages: [StoredMessage])? = nil
    ) {
        check = SSERequestCheck(
            base: base,
            configuration: configuration,
            addresses: links.addresses
        )
        events = TransportEventSource(label: configuration.label)
        catchAll = CatchAll(
            reportingTo: events,
            account: MemoryAccount(limit: configuration.limits.memory)
        )
        // An account of its own, or unread events would take the room of messages.
        observers = SSEObservers(account: MemoryAccount(limit: configuration.limits.memory))
        self.configuration = configuration
        self.links = links
        let (environment, policy) = (links.plain, configuration.reconnection)
        outbox = stored.map { store, _ in
            Outbox(StoreClient(store, by: environment.clock, OfflinePolicy()))
        }
        left = stored.map { [events] store, messages in
            SSELeftMessages(
                LeftMessages(
                    messages,
                    of: store,
                    hasQualities: false,
                    knowing: [],
                    reportingTo: events
                ),
                policy,
                in: environment
            )
        }
        pool = HTTPPool(configuration: configuration, links: links, events: events)
        hints.start(configuration.hints, in: links.plain) { [weak self] in self?.heed($0) }
    }

    // MARK: Hints

    /// Heeds what the app or the platform knows of the surroundings.
    ///
    /// The streams note it with the engine's lock held, so that each stream notes several hints in the same order.
    func heed(_ hint: ConnectionHint) {
        let consequences = state.withLock { state in
            if hint != .retryNow { state.isPaused = hint == .pause }
            switch hint {
            case .pause: left?.pause()
            case .resume: left?.resume()
            default: break
            }
            return state.streams.valuesInKeyOrder.map { $0.note(hint) }
        }
        for consequence in consequences { consequence.carryOut() }
    }

    // MARK: Requests

    var statistics: TransportStatistics {
        var statistics = TransportStatistics()
        statistics.inFlightCount = pool.busyCount
        statistics.waitingByteCount = streams().reduce(catchAll.account.byteCount) {
            $0 + $1.pressure.account.byteCount
        }
        statistics.connectionCount = openedCount.withLock { $0 }
        return statistics
    }

    func perform(_ request: Request) async throws -> Receipt {
        guard !state.withLock({ $0.isShutDown }) else { throw WaybillError.shutDown }
        switch request.command.code {
        case .send:
            beginLeft(request)
            return try await send(request)
        case .connect:
            try check.check(request)
            beginLeft(request)
            // Streams are opened by subscriptions: there is nothing to open before.
            return Receipt()
        case .disconnect:
            try check.check(request)
            left?.pause()
            for stream in streams() { await stream.close(because: Self.closed) }
            states.end()
            await flush()
            return Receipt()
        case .unsubscribe:
            try check.check(request)
            return try await unsubscribe(request)
        case .ack, .nack, .other, .subscribe:
            try check.check(request)
            throw WaybillError(.invalidEntry, "use subscribe(_:) for a subscription")
        }
    }

    private func send(_ request: Request) async throws -> Receipt {
        let plan = try check.plan(ofSend: request)
        let timeout = request.command[.timeout]
        let (topic, byteCount) = (request.topic ?? "", request.body.count)
        let begun = events.timestamp
        do {
            let receipt: Receipt
            // A later process would send it to the transport's URL.
            if let outbox, plan.method == "POST", plan.isForAnyHost, hasKey(request) {
                let limit = timeout ?? configuration.timeouts.confirmation
                let (clock, start) = (links.plain.clock, links.plain.clock.now)
                receipt = try await outbox.keeping(request, within: limit) { number in
                    // A stated time counts from the call.
                    let rest = timeout.map { max($0 - start.duration(to: clock.now), .zero) }
                    let receipt = try await answer(to: plan, request, within: rest)
                    outbox.store.remove(number)
                    return receipt
                }
            } else {
                receipt = try await answer(to: plan, request, within: timeout)
            }
            events.reportSend(topic, byteCount: byteCount, nil, since: begun)
            return receipt
        } catch {
            events.reportSend(topic, byteCount: byteCount, error, since: begun)
            throw error
        }
    }

    private func answer(
        to plan: HTTPRequestPlan,
        _ request: Request,
        within timeout: Duration?
    ) async throws -> Receipt {
        let response = try await pool.response(to: plan, request, timeout)
        return try SSEMapping.receipt(request, response)
    }

    // MARK: The store

    /// Whether the entry itself states an idempotency key, which is the same in the next process.
    private func hasKey(_ request: Request) -> Bool {
        HTTPHeaders((request.chain?.original ?? request).headers).first("idempotency-key") != nil
    }

    /// Begins to send what an earlier process has left.
    private func beginLeft(_ request: Request) {
        guard !state.withLock({ $0.isPaused }) else { return }
        let checkSend = { @Sendable [check] (request: Request) throws(WaybillError) in
            _ = try check.plan(ofSend: request)
        }
        left?.begin(request.chain, checking: checkSend) { [self] request in
            let timeout = request.command[.timeout]
            return try await answer(to: check.plan(ofSend: request), request, within: timeout)
        }
    }

    /// Waits until the store has written everything, at most for five seconds.
    func flush() async {
        await outbox?.client.flush(within: .seconds(5), reportingTo: events)
    }

    // MARK: Streams

    private static let closed = WaybillError(
        .notConnected,
        "the stream was closed before it was open"
    )

    func subscribe(_ request: Request) async throws -> Messages<Message> {
        let progress = try await progress(of: SSEStream.entryTopic(of: request))
        let stream = try makeStream(request, announces: false, progress)
        if request.command.isSet(.waitsForConnection) { return stream.start() }
        do {
            return try await stream.open()
        } catch let error as WaybillError {
            let isOver = error.code == .notConnected && state.withLock { $0.isShutDown }
            throw (isOver ? .shutDown : error).about(request)
        }
    }

    /// As ``subscribe(_:)``, without waiting for an answer: openings and ends are told among the events, each
    /// as an ``SSENotice``.
    func listen(_ request: Request) throws(WaybillError) -> Messages<Message> {
        try makeStream(request, announces: true, nil).start()
    }

    private func makeStream(
        _ request: Request,
        announces: Bool,
        _ progress: Progress?
    ) throws(WaybillError) -> SSEStream {
        guard request.command.code == .subscribe else {
            throw WaybillError(.invalidEntry, "subscribe(_:) accepts only subscriptions")
        }
        try check.check(request)
        beginLeft(request)
        let topic = SSEStream.entryTopic(of: request)
        return try state.withLock { state throws(WaybillError) in
            guard !state.isShutDown else { throw .shutDown }
            // Another stream of the topic would note other events under the same name.
            let isFirst = !state.streams.values.contains { $0.entryTopic.hasSameBytes(as: topic) }
            state.lastStream += 1
            let stream = SSEStream(
                number: state.lastStream,
                request: request,
                announces: announces,
                engine: self,
                isPaused: state.isPaused,
                progress: isFirst ? progress : nil
            )
            state.streams[state.lastStream] = stream
            return stream
        }
    }

    typealias Progress = (store: any SessionStore, lastEventID: String?)

    /// How far the app has come with the streams of a topic; nil without a store.
    private func progress(of topic: String) async throws(WaybillError) -> Progress? {
        guard let store = outbox?.store else { return nil }
        // Not on the caller's thread, which may be the main one: it waits for a disk.
        let reading = Task { @concurrent in try store.lastEventID(of: topic) }
        do { return (store, try await reading.value) } catch {
            throw WaybillError(
                .limitExceeded,
                "the store could not be read: events would be missed",
                underlying: error
            )
        }
    }

    /// Forgets a stream that is over.
    func remove(_ stream: SSEStream) {
        state.withLock { $0.streams[stream.number] = nil }
    }

    private func streams() -> [SSEStream] { state.withLock { $0.streams.valuesInKeyOrder } }

    private func streams(of topic: String?) -> [SSEStream] {
        streams().filter { $0.topic.hasSameBytes(as: topic ?? "") }
    }

    private func unsubscribe(_ request: Request) async throws -> Receipt {
        let found = streams(of: request.topic)
        guard !found.isEmpty else {
            return Receipt(topic: request.topic, reason: "no subscription existed")
        }
        for stream in found { await stream.close(because: Self.closed) }
        return Receipt(topic: request.topic)
    }

    /// Asks for the streams of a topic again.
    func restart(topic: String?) -> Int {
        let found = streams(of: topic)
        for stream in found { stream.restart() }
        return found.count
    }

    // MARK: The end

    func shutdown() async {
        let isFirst = state.withLock { state in
            defer { state.isShutDown = true }
            return !state.isShutDown
        }
        guard isFirst else { return }
        hints.stop()
        left?.end()
        outbox?.shutDown()
        for stream in streams() { await stream.close(because: .shutDown) }
        await pool.shutdown()
        catchAll.end()
        observers.finish()
        states.end()
        await flush()
        states.source.finish()
        LinkEnvironment.reclaim()
    }

    /// Closes idle connections without waiting, when the transport was released.
    ///
    /// Streams with a consumer continue.
    func abandon() {
        hints.stop()
        left?.end()
        outbox?.shutDown()
        observers.finish()
        pool.closeIdle()
    }
}
