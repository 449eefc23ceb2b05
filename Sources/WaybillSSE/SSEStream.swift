import EventStreamWire
import HTTPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One event stream with its subscription.
///
/// It is requested again after each end, until the subscription ends or the server refuses for good.
///
/// | end of an attempt | what follows |
/// | --- | --- |
/// | an open stream ends or is lost | a wait, then a request from the last event on |
/// | 204 (No Content) | the messages end without an error |
/// | 408, 425, 429, 5xx, no connection | before the first success the error; after it a wait, then another request |
/// | any other status, a wrong content type, a limit | the error |
final class SSEStream: Sendable {
    struct State: Sendable {
        var task: Task<Void, Never>?
        var isClosed = false
        var closeError: WaybillError?
        /// The error of ``open()`` if the stream is closed before it was open.
        var closeReason: WaybillError?
        /// Whether the connection was closed for a restart, so that another one follows at once.
        var isClosedForRestart = false
        /// Whether the connection was closed for a pause, which may be over before the end is noticed.
        var isClosedForPause = false
        var isReading = true
        /// Whether the app had stopped reading from this connection before the response arrived.
        var wasHeldBeforeAnswer = false
        /// Orders the calls of the present driver that stop or resume reading.
        var hold = ReadingHold()
        var driver: Driver<EventStreamConnection>?
        var lastEventID: String
        /// The reconnection time that the server has set with `retry`; nil if none.
        var reconnectionTime: Duration?
        var isOpen = false
        /// Whether an event has arrived in the present attempt.
        var hasEvents = false
    }

    let topic: String
    /// The request as it reached the transport.
    let request: Request
    /// Converts the request into an HTTP request, at each attempt.
    let makePlan: @Sendable (Request) throws(WaybillError) -> HTTPRequestPlan
    private let options: SubscribeOptions
    /// Whether each opening and end is delivered among the events, as an ``SSENotice``.
    private let announces: Bool
    private let onEnd: @Sendable () -> Void
    /// Whether a failed first attempt is followed by others, because no task waits for its result.
    var isPatient: Bool { announces || options.startsOffline }

    let configuration: SSEConfiguration
    let links: HTTPLinks
    /// The source of credentials; each stream has its own, because the server may refuse different ones.
    let desk: CredentialProvider?
    let patience: SSEBackoff
    private let states: SSEStates
    private let events: TransportEventSource
    private let catchAll: CatchAll
    private let observers: SSEObservers
    /// Counts the waiting bytes, also those of earlier connections.
    private let account: MemoryAccount
    let journal: SSEReporter
    let state: Locked<State>
    let opened = Promise<Void>()
    private let ended = Promise<Void>()

    init(
        request: Request,
        options: SubscribeOptions,
        announces: Bool,
        engine: SSEEngine,
        isPaused: Bool,
        onEnd: @escaping @Sendable () -> Void
    ) {
        let stated =
            HTTPHeaders(request.headers).first("last-event-id")
            ?? HTTPHeaders(engine.configuration.headers).first("last-event-id")
        self.request = request
        topic = request.topic ?? ""
        makePlan = { [planner = engine.planner] request throws(WaybillError) in
            try planner.streamPlan(request, options)
        }
        self.options = options
        self.announces = announces
        self.onEnd = onEnd
        configuration = engine.configuration
        links = engine.links
        desk = configuration.credentials.map { [links] in CredentialProvider($0, in: links.plain) }
        patience = SSEBackoff(
            engine.configuration.reconnection,
            in: engine.links.plain,
            isPaused: isPaused
        )
        states = engine.states
        events = engine.events
        catchAll = engine.catchAll
        observers = engine.observers
        account = MemoryAccount(limit: engine.configuration.memoryLimit)
        journal = SSEReporter(topic: topic, events: engine.events)
        state = Locked(State(lastEventID: options.lastEventID ?? stated ?? ""))
    }

    /// Requests the stream and waits until it is open.
    func open() async throws -> Messages<Message> {
        let messages = start()
        do {
            try await opened.value()
            return messages
        } catch {
            stop(throwing: nil)
            throw error
        }
    }

    /// Starts to request the stream, and does not wait until it is open.
    func start() -> Messages<Message> {
        let pressure = ReadingPressure(account: account) { [weak self] isReading in
            self?.setReading(isReading)
        }
        let listener = MessageListener(
            options,
            buffering: configuration.buffering,
            topic: topic,
            events: events,
            onLeave: { [weak self] _ in self?.stop(throwing: nil) },
            pressure: pressure,
            onOverflow: { [weak self] _ in self?.stop(throwing: nil) }
        )
        let messages = listener.source.messages
        let task = Task { @concurrent in await self.run(listener.source) }
        let isClosed = state.withLock { state in
            state.task = task
            return state.isClosed
        }
        if isClosed { task.cancel() }
        return messages
    }

    /// Ends the stream and waits until its connection is closed.
    ///
    /// - Parameters:
    ///   - error: The error at the end of the messages; nil for an end without an error.
    ///   - reason: The error of ``open()`` if the stream was not open yet.
    func close(throwing error: WaybillError?, because reason: WaybillError) async {
        stop(throwing: error, because: reason)
        await ended.waitUntilResolved()
    }

    private func stop(throwing error: WaybillError?, because reason: WaybillError? = nil) {
        let (task, driver) = state.withLock { state in
            if !state.isClosed {
                state.isClosed = true
                state.closeError = error
                state.closeReason = reason
            }
            return (state.task, state.driver)
        }
        driver?.withCore(.immediate) { core, _ in core.close() }
        task?.cancel()
    }

    private func setReading(_ isReading: Bool) {
        let driver = state.withLock { state in
            state.isReading = isReading
            state.hold.isHeld = !isReading
            if !isReading, !state.isOpen { state.wasHeldBeforeAnswer = true }
            return state.driver
        }
        if let driver { tellReading(driver) }
    }

    /// Tells the driver whether to read, unless another driver has replaced it.
    private func tellReading(_ driver: Driver<EventStreamConnection>) {
        var next = state.withLock { state in
            state.driver === driver ? state.hold.beginTelling() : nil
        }
        while let isHeld = next {
            driver.setReading(!isHeld)
            next = state.withLock { state in
                guard state.driver === driver else { return nil }
                state.hold.endTelling()
                return state.hold.beginTelling()
            }
        }
    }

    // MARK: Attempts

    private func run(_ source: MessageSource) async {
        var failures = 0
        var cause: WaybillError?
        var isPauseTold = false
        while !state.withLock({ $0.isClosed }) {
            guard await sleepWhilePaused(isTold: isPauseTold) else { break }
            isPauseTold = false
            states.report(.connecting(attempt: failures + 1), of: self)
            let outcome = await attempt(failures + 1, source)
            cause = outcome.error
            let (isClosed, lastEventID) = state.withLock { ($0.isClosed, $0.lastEventID) }
            if isClosed { break }
            if takeRestart() {
                if outcome.wasOpen {
                    failures = 0
                    announceEnd(outcome, lastEventID, willReconnect: true, source)
                }
                continue
            }
            let isClosedForPause = state.withLock { state in
                defer { state.isClosedForPause = false }
                return state.isClosedForPause
            }
            if isClosedForPause || patience.isPaused {
                // Reported even if the pause is over by now, because the stream is no longer open.
                reportPause()
                isPauseTold = true
                if outcome.wasOpen {
                    failures = 0
                    announceEnd(outcome, lastEventID, willReconnect: true, source)
                }
                continue
            }
            let mayGoOn = outcome.wasOpen || opened.result != nil || isPatient
            let delay =
                outcome.isFinal || !mayGoOn
                ? nil
                : patience.delay(after: outcome, stated: state.withLock { $0.reconnectionTime })
            announceEnd(outcome, lastEventID, willReconnect: delay != nil, source)
            guard let delay, let wait = patience.wait(for: delay) else { break }
            failures = outcome.wasOpen ? 0 : failures + 1
            let until = ContinuousClock.now + delay
            let reason = cause ?? WaybillError(.connectionLost, "the stream has ended")
            journal.noteWait(until: until, attempt: failures + 1, cause: reason)
            states.report(.waiting(until: until, cause: reason), of: self)
            guard await patience.sleep(wait) else { break }
        }
        finish(source, cause)
    }

    private func announceEnd(
        _ outcome: Outcome,
        _ lastEventID: String,
        willReconnect: Bool,
        _ source: MessageSource
    ) {
        guard announces else { return }
        let notice = SSENotice(
            .ended(
                status: outcome.status,
                willReconnect: willReconnect,
                error: outcome.error,
                lastEventID: lastEventID
            )
        )
        source.deliver([notice.message])
    }

    private func finish(_ source: MessageSource, _ cause: WaybillError?) {
        let (isClosed, closeError, closeReason) = state.withLock {
            ($0.isClosed, $0.closeError, $0.closeReason)
        }
        let error = isClosed ? closeError : cause
        journal.noteSubscriptionEnd(error)
        opened.resolve(
            .failure(error ?? (isClosed ? closeReason ?? Self.closed : Self.noStream))
        )
        state.withLock { $0.isClosed = true }
        // Called first, so that code that learns of the end from the messages finds the stream removed.
        onEnd()
        states.remove(self, error)
        source.finish(throwing: error)
        ended.resolve(.success(()))
    }

    // MARK: Pauses

    private static let pause = WaybillError(.notConnected, "the connection is paused")

    private func reportPause() {
        let until = ContinuousClock.now + .seconds(10 * 365 * 86_400)
        states.report(.waiting(until: until, cause: Self.pause), of: self)
    }

    /// Waits until the end of a pause.
    ///
    /// - Parameter isTold: Whether observers know that this stream waits for the end of a pause.
    /// - Returns: False if the stream was ended meanwhile.
    private func sleepWhilePaused(isTold: Bool) async -> Bool {
        guard patience.isPaused else { return true }
        if !isTold { reportPause() }
        // A task that waits in `open()` has a time limit.
        let isOpening = opened.result == nil && !isPatient
        let limit = isOpening ? configuration.connectTimeout : nil
        if await patience.sleepWhilePaused(within: limit) { return true }
        guard !Task.isCancelled else { return false }
        stop(throwing: Self.pause, because: Self.pause)
        return false
    }

    /// Follows a hint of the app or of the platform.
    func heed(_ hint: ConnectionHint) {
        switch hint {
        case .pause:
            patience.pause()
            let driver = state.withLock { state in
                // Another pause may begin before the end of this connection is noticed.
                if state.driver != nil { state.isClosedForPause = true }
                return state.driver
            }
            driver?.withCore(.immediate) { core, _ in core.close() }
        case .resume: patience.resume()
        case .retryNow: patience.hurry()
        }
    }

    func outcome(of closure: EventStreamClosure) -> Outcome {
        let (wasOpen, hadEvents) = state.withLock { state in
            defer { state.isOpen = false }
            return (state.isOpen, state.hasEvents)
        }
        return Outcome(closure, wasOpen: wasOpen, hadEvents: hadEvents)
    }

    /// Whether the app had stopped reading from the last connection before the response arrived.
    var wasHeldBeforeAnswer: Bool { state.withLock { $0.wasHeldBeforeAnswer } }

    /// Connects, sends the request, and delivers events until the stream ends.
    func stream(
        _ plan: HTTPRequestPlan,
        _ source: MessageSource
    ) async throws -> EventStreamClosure {
        let link = try await links.open(plan.target, within: configuration.connectTimeout)
        let lastEventID = state.withLock { $0.lastEventID }
        let core = EventStreamConnection(
            lastEventID: lastEventID,
            limits: EventStreamLimits(
                lineByteCount: configuration.lineLimit,
                eventByteCount: configuration.maximumEventSize
            ),
            acceptsCompression: configuration.acceptsCompression
                || plan.headers.first("accept-encoding") != nil,
            idleTimeout: configuration.idleTimeout,
            reportsComments: announces || !observers.isEmpty
        )
        let driver = Driver(
            core: core,
            stream: link.stream,
            timers: link.timers,
            account: account
        )
        let over = Promise<EventStreamClosure>()
        driver.start(
            .init(
                receive: { [weak driver] events in
                    self.handle(events, source, driver, over)
                },
                end: { error in
                    link.timers.invalidate()
                    over.resolve(self.result(of: error))
                }
            )
        )
        let isClosed = state.withLock { state in
            state.driver = driver
            state.hold = ReadingHold()
            state.hold.isHeld = !state.isReading
            state.wasHeldBeforeAnswer = !state.isReading
            state.hasEvents = false
            return state.isClosed
        }
        defer {
            driver.close()
            state.withLock { $0.driver = nil }
        }
        guard !isClosed else { throw CancellationError() }
        if patience.isPaused {
            state.withLock { $0.isClosedForPause = true }
            throw CancellationError()
        }
        tellReading(driver)
        journal.noteHost(plan.target.host)
        log(.outbound, plan.description)
        do {
            try driver.withCore(.immediate) { (core, now) throws(HTTPRequestError) in
                try core.request(
                    plan.head(adding: fields(lastEventID)),
                    body: plan.body,
                    timeout: link.timeLeft,
                    at: now
                )
            }
        } catch {
            throw SSEMapping.error(error)
        }
        return try await over.value()
    }

    /// Converts the end of a connection into the result of its stream.
    private func result(of error: LinkError?) -> Result<EventStreamClosure, any Error> {
        guard let error else { return .success(.closed) }
        // A server may refuse the client's certificate after the handshake. A stream that was open is requested again.
        if case .tls = error, !state.withLock({ $0.isOpen }) {
            return .failure(WaybillError(error))
        }
        return .success(.connection(.endOfStream))
    }

    // MARK: Events

    private func handle(
        _ events: [EventStreamConnection.Event],
        _ source: MessageSource,
        _ driver: Driver<EventStreamConnection>?,
        _ over: Promise<EventStreamClosure>
    ) {
        var hasEvents = false
        var batch: [Message] = []
        batch.reserveCapacity(events.count)
        for event in events {
            switch event {
            case .opened(let head):
                state.withLock { $0.isOpen = true }
                patience.noteOpened()
                log(.inbound, SSEMapping.reason(head))
                journal.noteOpened()
                states.report(.connected, of: self)
                opened.resolve(.success(()))
                let response = EventStreamResponse(head)
                observers.report(.opened(topic: topic, response))
                if announces { batch.append(SSENotice(.opened(response)).message) }
            case .comment(let text):
                observers.report(.comment(topic: topic, text))
                // The text counts as memory, so that a flood of comments stops the reading.
                if announces { batch.append(SSENotice(.comment, body: Payload(text)).message) }
            case .event(let event):
                if !hasEvents { state.withLock { $0.hasEvents = true } }
                hasEvents = true
                log(.inbound, "event \(event.type)", Payload(event.data))
                if let types = options.eventTypes,
                    !types.contains(where: event.type.hasSameBytes(as:))
                {
                    continue
                }
                batch.append(SSEMapping.message(event, topic: topic))
            case .closed(let closure):
                deliver(batch, to: source)
                batch = []
                note(driver)
                // After an end of stream, the handler's `end` has the cause.
                if closure != .connection(.endOfStream) { over.resolve(.success(closure)) }
            }
        }
        note(driver)
        guard !batch.isEmpty else { return }
        deliver(batch, to: source)
    }

    private func deliver(_ batch: consuming [Message], to source: MessageSource) {
        journal.noteReceived(batch)
        catchAll.deliver(batch)
        source.deliver(batch)
    }

    /// Stores the last event ID and the reconnection time for the next attempt.
    private func note(_ driver: Driver<EventStreamConnection>?) {
        guard let driver else { return }
        let (id, time) = driver.withCore { core, _ in (core.lastEventID, core.reconnectionTime) }
        state.withLock { state in
            state.lastEventID = id
            if let time { state.reconnectionTime = time }
        }
    }

    private func log(
        _ direction: WireRecord.Direction,
        _ text: @autoclosure () -> String,
        _ body: @autoclosure () -> Payload = Payload()
    ) {
        guard let logger = configuration.wireLogger else { return }
        let body = body()
        logger.logFrame(direction, text(), byteCount: body.count, body: body)
    }
}
