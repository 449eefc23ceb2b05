import HTTPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// One subscription: a stream that is asked for again and again, until its messages are let go of or the server refuses.
///
/// ``SSEMachine`` decides. One task makes the attempts and sleeps between them.
///
/// | attempt ends with | then |
/// | --- | --- |
/// | the end of an open stream, or its loss | wait, ask again from the last event on |
/// | 204 (No Content) | the stream is over, without an error |
/// | 408, 425, 429, 5xx, no connection | before the first success: the error; after it: wait, ask again |
/// | any other status, a wrong content type, a limit | the error |
final class SSEStream: Sendable {
    private struct State: Sendable {
        var machine: SSEMachine
        var reporter: SSEReporter
        var task: Task<Void, Never>?
        /// Wakes the task while it sleeps.
        var alarm: Promise<Void>?
        var connection: SSEConnection?
        var lastEventID: String
    }

    /// The number of the stream in its engine.
    let number: UInt64
    let topic: String
    /// The topic as the entry states it, without what interceptors add, such as a token.
    let entryTopic: String
    /// The request as it reached the transport.
    let request: Request
    /// The source of credentials; of this stream alone, since other streams may be refused others.
    let credentials: CredentialProvider?
    /// The event types wanted; nil for all.
    let eventTypes: Set<String>?
    /// Whether each opening and end is told among the events, as an ``SSENotice``.
    let announces: Bool
    let engine: SSEEngine
    /// Holds the server back, and counts what waits in memory, whichever connection it came over.
    let pressure: ReadingPressure
    /// Where the app's progress is stored; nil for nowhere.
    private let store: (any SessionStore)?
    private let state: Locked<State>
    private let opened = Promise<Void>()
    private let ended = Promise<Void>()

    init(
        number: UInt64,
        request: Request,
        announces: Bool,
        engine: SSEEngine,
        isPaused: Bool,
        progress: SSEEngine.Progress?
    ) {
        let configuration = engine.configuration
        let stated =
            HTTPHeaders(request.headers).first("last-event-id")
            ?? HTTPHeaders(configuration.headers).first("last-event-id")
        self.number = number
        self.request = request
        topic = request.topic ?? ""
        entryTopic = Self.entryTopic(of: request)
        store = progress?.store
        eventTypes = request.command[.eventTypes]
        self.announces = announces
        self.engine = engine
        credentials = configuration.credentials.map { source in
            CredentialProvider(source, in: engine.links.plain)
        }
        pressure = ReadingPressure(
            account: MemoryAccount(limit: configuration.limits.memory),
            reportingTo: engine.events,
            by: engine.links.plain.clock
        )
        let machine = SSEMachine(
            configuration.reconnection,
            isPaused: isPaused,
            timeLimit: announces || request.command.isSet(.waitsForConnection)
                ? nil : configuration.timeouts.connect
        )
        state = Locked(
            State(
                machine: machine,
                reporter: SSEReporter(topic: topic),
                lastEventID: request.command[.lastEventID] ?? stated ?? progress?.lastEventID ?? ""
            )
        )
    }

    static func entryTopic(of request: Request) -> String {
        (request.chain?.original ?? request).topic ?? ""
    }

    /// Asks for the stream and waits until it is open.
    func open() async throws -> Messages<Message> {
        let messages = start()
        do {
            try await opened.value()
            return messages
        } catch {
            stop()
            throw error
        }
    }

    /// Asks for the stream and goes on asking, whether or not it ever opens.
    func start() -> Messages<Message> {
        let listener = MessageListener(
            request.command,
            buffering: engine.configuration.buffering,
            topic: topic,
            events: engine.events,
            onLeave: { [weak self] _ in self?.stop() },
            pressure: pressure
        )
        let messages = listener.source.messages
        state.withLock { state in
            state.task = Task { @concurrent in await self.run(listener.source) }
        }
        return messages
    }

    // MARK: Events from outside

    /// Ends it and waits until its connection is closed.
    /// - Parameter reason: The error of the call that waits for the opening.
    func close(because reason: WaybillError) async {
        stop(because: reason)
        await ended.waitUntilResolved()
    }

    private func stop(because reason: WaybillError = SSEMachine.interrupted) {
        apply { $0.close(.init(nil, opening: reason)) }
    }

    /// Asks for the stream again at once, from the last event on.
    func restart() {
        apply { $0.restart() }
    }

    /// Notes what the app or the platform knows of the surroundings.
    /// - Returns: What follows, to be carried out with no lock held.
    func note(_ hint: ConnectionHint) -> Consequence {
        note { machine in
            switch hint {
            case .pause: machine.pause()
            case .resume: machine.resume()
            case .retryNow: machine.retryNow()
            }
        }
    }

    private func apply(_ event: (inout SSEMachine) -> SSEMachine.Action) {
        note(event).carryOut()
    }

    private func note(_ event: (inout SSEMachine) -> SSEMachine.Action) -> Consequence {
        state.withLock { state in
            Consequence(
                action: event(&state.machine),
                alarm: state.alarm,
                connection: state.connection,
                task: state.task
            )
        }
    }

    /// What follows from an event outside the task.
    struct Consequence: Sendable {
        fileprivate let action: SSEMachine.Action
        fileprivate let alarm: Promise<Void>?
        fileprivate let connection: SSEConnection?
        fileprivate let task: Task<Void, Never>?

        func carryOut() {
            switch action {
            case .none: break
            case .wake: alarm?.resolve(.success(()))
            case .closeConnection: connection?.close()
            case .cancel:
                connection?.close()
                task?.cancel()
            }
        }
    }

    // MARK: The task

    private func run(_ source: MessageSource) async {
        let clock = engine.links.plain.clock
        var step = advance { $0.next(at: clock.now) }
        while true {
            switch step {
            case .attempt(let number, let wasPaused):
                if wasPaused { reportPause() }
                step = await attempt(number, source, by: clock)
            case .wait(let wait):
                let until = ContinuousClock.now + wait.delay
                engine.events.report(
                    .waiting(until: until, attempt: wait.attempt, cause: wait.cause)
                )
                let waiting = ConnectionState.waiting(for: wait.delay, cause: wait.cause)
                engine.states.report(waiting, of: self, until: until)
                step = await sleep(until: wait.until, by: clock)
            case .pause(let until):
                reportPause()
                step = await sleep(until: until, by: clock)
            case .finish(let ending): return finish(ending, source)
            }
        }
    }

    /// Asks the machine for the next step; from then on it may be woken.
    private func advance(_ event: (inout SSEMachine) -> SSEMachine.Step) -> SSEMachine.Step {
        state.withLock { state in
            state.alarm = Promise()
            return event(&state.machine)
        }
    }

    private func reportPause() { engine.states.report(.paused, of: self) }

    private func attempt(
        _ number: Int,
        _ source: MessageSource,
        by clock: any TimerSource
    ) async -> SSEMachine.Step {
        engine.states.report(.connecting(attempt: number), of: self)
        let machine = state.withLock { $0.machine }
        let occasion = ConnectOccasion(
            isReconnection: machine.isReconnection,
            isUnattended: machine.isUnattended
        )
        let attempt = SSEAttempt(number: number, occasion: occasion, source: source, stream: self)
        let outcome = await attempt.run()
        let (tellsEnd, lastEventID, step) = state.withLock { state in
            let tellsEnd = state.machine.tellsEnd
            state.alarm = Promise()
            let step = state.machine.attemptEnded(
                outcome,
                at: clock.now,
                random: engine.links.plain.random
            )
            return (tellsEnd, state.lastEventID, step)
        }
        guard announces, tellsEnd else { return step }
        let notice = SSENotice(
            .ended(
                status: outcome.status,
                willReconnect: !step.isLast,
                error: outcome.error,
                lastEventID: lastEventID
            )
        )
        source.deliver([notice.message])
        return step
    }

    private func sleep(
        until deadline: WireInstant?,
        by clock: any TimerSource
    ) async -> SSEMachine.Step {
        let timer = deadline.map { deadline in
            clock.scheduleTimer(at: deadline) { [weak self] in
                self?.apply { $0.deadline(at: deadline) }
            }
        }
        defer { if let timer { clock.cancelTimer(timer) } }
        // A timer for a moment that has passed would come at once, in a turn of its own.
        if let deadline, deadline <= clock.now { apply { $0.deadline(at: deadline) } }
        _ = try? await state.withLock { $0.alarm }?.value()
        return advance { $0.next(at: clock.now) }
    }

    private func finish(_ ending: SSEMachine.Ending, _ source: MessageSource) {
        let event = state.withLock { $0.reporter.finished(ending.error) }
        engine.events.report(event)
        opened.resolve(.failure(ending.opening))
        // First, so that the stream has left no trace when its messages end.
        engine.remove(self)
        engine.states.remove(self, ending.error)
        source.finish(throwing: ending.error)
        ended.resolve(.success(()))
    }

    // MARK: The connection

    /// The last event ID, with which the stream is asked for.
    var lastEventID: String { state.withLock { $0.lastEventID } }

    /// Whether the server streams, or has until this side closed the connection.
    var isOpen: Bool { state.withLock { $0.machine.isOpen } }

    /// Takes a new connection.
    /// - Returns: Whether the request is to be sent; false for a connection that is to be closed.
    func take(_ connection: SSEConnection) -> Bool {
        let isWanted = state.withLock { state in
            state.connection = connection
            return state.machine.connected()
        }
        guard isWanted else { return false }
        pressure.attach { [weak self] isReading in
            if !isReading { self?.state.withLock { $0.machine.held() } }
            connection.setReading(isReading)
        }
        return true
    }

    /// Lets go of a connection that is over.
    /// - Returns: Whether the stream was open, and whether its answer may have been read late.
    func letGo() -> (wasOpen: Bool, wasHeld: Bool) {
        pressure.detach()
        return state.withLock { state in
            state.connection = nil
            return state.machine.disconnected()
        }
    }

    /// The server has begun to stream.
    func noteOpened(at now: WireInstant) {
        let isOpen = state.withLock { state in
            guard state.machine.opened(at: now) else { return false }
            let events = state.reporter.opened()
            engine.events.report(contentsOf: events)
            return true
        }
        guard isOpen else { return }
        engine.states.report(.connected, of: self)
        opened.resolve(.success(()))
    }

    /// Keeps what the next attempt needs to know.
    /// - Returns: The reconnection time, if the server has set another one.
    func noteReceived(
        _ lastEventID: String,
        _ serverTime: Duration?,
        hasEvents: Bool
    ) -> Duration? {
        state.withLock { state in
            let before = state.machine.serverTime
            state.lastEventID = lastEventID
            state.machine.received(hasEvents: hasEvents, serverTime: serverTime)
            return serverTime == before ? nil : serverTime
        }
    }

    /// Whether a store notes how far the app has come.
    var notesProgress: Bool { store != nil }

    /// Has the store note that the app has taken an event, when it takes the message.
    func noting(_ lastEventID: String) -> SSEDelivery? {
        store.map { SSEDelivery(lastEventID, of: entryTopic, in: $0) }
    }

    // MARK: Reports

    /// Tells observers what the reporter makes of an event, with the lock held, so that reports have the order of the events.
    func report(_ body: (inout SSEReporter) -> [TransportEvent]) {
        state.withLock { state in
            let events = body(&state.reporter)
            engine.events.report(contentsOf: events)
        }
    }
}

/// Stores how far the app has come when it takes an event.
final class SSEDelivery: MessageDelivery {
    private let lastEventID: String
    private let topic: String
    private let store: any SessionStore

    init(_ lastEventID: String, of topic: String, in store: any SessionStore) {
        self.lastEventID = lastEventID
        self.topic = topic
        self.store = store
    }

    func messageWasTaken() -> MessageValidity {
        store.setLastEventID(lastEventID, of: topic)
        return .valid
    }

    func messageWasDropped() {}
}
