import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Who listens to what: outlives every connection, of which there is one at a time.
///
/// | the connection is lost | its successor |
/// | --- | --- |
/// | and comes back with its session | gets what was not subscribed to yet, and what was left meanwhile |
/// | and comes back without | gets every filter again |
/// | and does not come back | every stream ends |
final class MQTTSubscriptions: DeliverySettler {
    private struct State: Sendable {
        var router = MQTTRouter()
        /// The connection that there is.
        var session: MQTTSession?
        /// Filters that the server may still have, and nobody any longer.
        var leftFilters: [String] = []
        /// What nobody listens for yet; nil when nothing is kept.
        var held: MQTTHeldMessages?
        /// The clock, while something is kept.
        var timers: (any TimerSource)?
        /// The timer for the first of that.
        var timer: UInt64?
        /// When the connection before was lost.
        var lossTime: ContinuousClock.Instant?
    }

    /// Where it is reported what becomes of subscriptions and messages.
    let events: TransportEventSource

    private let state: Locked<State>
    private let environment: LinkEnvironment
    private let shared: Shared<MQTTConfiguration>
    private var configuration: MQTTConfiguration { shared.value }
    private let keeper: MQTTSessionKeeper
    private let pressure = ReadingPressure()
    private let manual = ManualDeliveries<MQTTSubscriptions>()

    /// - Parameters:
    ///   - shared: How messages are buffered.
    ///   - keeper: Who knows which connection has the session.
    ///   - events: Where it is reported what becomes of subscriptions and messages.
    ///   - environment: Where clocks come from.
    init(
        configuration shared: Shared<MQTTConfiguration>,
        keeper: MQTTSessionKeeper,
        events: TransportEventSource,
        environment: LinkEnvironment
    ) {
        state = Locked(State(held: shared.value.lateDelivery.map { MQTTHeldMessages($0) }))
        self.environment = environment
        self.shared = shared
        self.events = events
        self.keeper = keeper
    }

    // MARK: Connections

    /// Goes over to a connection that the server has accepted.
    func attach(_ session: MQTTSession) {
        state.withLock { $0.session = session }
    }

    /// Lets go of a connection that is over.
    func detach(_ session: MQTTSession) {
        let isPresent = state.withLock { state in
            guard state.session === session else { return false }
            state.session = nil
            state.lossTime = .now
            return true
        }
        guard isPresent else { return }
        pressure.detach()
        // The server delivers again what is not acknowledged; of QoS 2 it only wants to hear the outcome.
        manual.remove { $0.qualityOfService != .exactlyOnce }
    }

    /// Has the server know every filter again.
    ///
    /// A filter that the server no longer grants ends its streams with the refusal; the others go on.
    ///
    /// - Parameters:
    ///   - session: The connection.
    ///   - hasSession: Whether the server has kept the session.
    /// - Throws: `WaybillError` when the connection is lost meanwhile; `CancellationError`.
    func resume(over session: MQTTSession, hasSession: Bool) async throws {
        let (entries, left) = state.withLock { state in
            if !hasSession {
                state.router.forgetGrants()
                state.leftFilters = []
            }
            return (state.router.ungranted, state.leftFilters)
        }
        if !hasSession { manual.removeAll() }
        if !entries.isEmpty || !left.isEmpty { try await resume(entries, left, over: session) }
        // Not before: held back, the server could not answer.
        pressure.attach(session.reading)
        // Over already, and nobody else to let go of it.
        if state.withLock({ $0.session !== session }) { pressure.detach() }
    }

    private func resume(
        _ entries: [MQTTSubscriptionEntry],
        _ left: [String],
        over session: MQTTSession
    ) async throws {
        try await withThrowingTaskGroup { group in
            if !left.isEmpty {
                group.addTask {
                    do { _ = try await session.unsubscribe(left, Self.request(left[0])) } catch let
                        error as WaybillError where error.code == .rejected
                    {
                        // What nobody listens to may stay as well.
                    }
                    self.state.withLock { state in
                        state.leftFilters.removeAll { left.contains($0) }
                    }
                }
            }
            for batch in session.batches(of: entries) {
                group.addTask { try await self.resubscribe(batch, over: session) }
            }
            try await group.waitForAll()
        }
    }

    private static func request(_ filter: String) -> Request {
        Request(topic: filter, command: .subscribe(SubscribeOptions()))
    }

    private func resubscribe(
        _ entries: [MQTTSubscriptionEntry],
        over session: MQTTSession
    ) async throws {
        guard let first = entries.first else { return }
        let answers = try await session.subscribe(
            entries.map(\.subscription),
            identifier: entries.count == 1 ? first.identifier : nil,
            Self.request(first.subscription.filter),
            timeout: nil
        )
        for (entry, answer) in zip(entries, answers) {
            let filter = entry.subscription.filter
            switch answer {
            case .success(let granted):
                let isWanted = state.withLock { state in
                    state.router.grant(filter, granted)
                    // Everybody may have left meanwhile.
                    guard state.router.isEstablished(filter) else { return false }
                    events.report(
                        .subscribed(
                            topic: filter,
                            since: state.lossTime,
                            qos: granted,
                            isAgain: true
                        )
                    )
                    return true
                }
                if !isWanted { session.leave(filter) }
            case .failure(let error):
                for source in state.withLock({ remove(filter, from: &$0, because: error) }) {
                    source.finish(throwing: error)
                    pressure.forget(source)
                }
            }
        }
    }

    /// Removes a filter, and reports it.
    /// - Returns: Who listened.
    private func remove(
        _ filter: String,
        from state: inout State,
        because cause: WaybillError?
    ) -> [MessageSource] {
        if state.router.isEstablished(filter) {
            events.report(.subscriptionEnded(topic: filter, cause: cause))
        }
        return state.router.remove(filter)
    }

    /// Ends every stream, when no connection follows.
    func conclude(_ cause: WaybillError?) {
        let sources = state.withLock { state in
            for filter in state.router.establishedFilters {
                events.report(.subscriptionEnded(topic: filter, cause: cause))
            }
            defer {
                state.router = MQTTRouter()
                state.leftFilters = []
            }
            return state.router.sources
        }
        manual.removeAll()
        dropHeld()
        for source in sources { source.finish(throwing: cause) }
        pressure.forgetAll()
    }

    // MARK: Listeners

    /// Subscribes a new listener; the filter is sent only if nobody has it yet, or not as good.
    func subscribe(
        _ subscription: MQTTSubscription,
        _ request: Request,
        _ options: SubscribeOptions,
        over session: MQTTSession
    ) async throws -> Messages<Message> {
        let filter = subscription.filter
        let listener = MessageListener(
            options,
            buffering: configuration.buffering,
            topic: filter,
            events: events,
            onLeave: { [weak self] source in self?.listenerLeft(source, filter) },
            pressure: pressure,
            // Not only when the stream is let go of: nothing that comes would reach anybody.
            onOverflow: { [weak self] source in self?.listenerLeft(source, filter) }
        )
        let messages = listener.source.messages
        let matching = (try? MQTTTopicFilter(filter))?.filter ?? filter
        let (answer, identifier) = add(listener, subscription, matching)
        if let identifier {
            // Sent for all who wait for its answer: one of them may be cancelled, the others go on.
            let begun = events.timestamp
            Task { @concurrent in
                var isConfirmed = false
                do {
                    let granted = try await session.subscribe(
                        [subscription],
                        identifier: identifier,
                        request,
                        timeout: options.timeout
                    )[0].get()
                    isConfirmed = true
                    try await note(granted, of: filter, by: session, since: begun)
                    answer.resolve(.success(granted))
                } catch {
                    if !isConfirmed {
                        let reason = WaybillError(reporting: error)
                        events.report(
                            .subscriptionRefused(topic: filter, since: begun, error: reason)
                        )
                    }
                    let sources = state.withLock { $0.router.revoke(filter, answer) }
                    answer.resolve(.failure(error))
                    withExtendedLifetime(sources) {}
                }
            }
        }
        do {
            listener.source.grantedQualityOfService = try await answer.value()
            return messages
        } catch {
            listener.source.terminate()
            throw error
        }
    }

    /// Adds a listener, which first gets what came before it.
    /// - Returns: What resolves when the server has answered, and the identifier if the filter is to be sent.
    private func add(
        _ listener: MessageListener,
        _ subscription: MQTTSubscription,
        _ matching: String
    ) -> (Promise<QualityOfService>, UInt32?) {
        let filter = subscription.filter
        while true {
            var late: [MQTTHeldMessages.Held] = []
            let added = state.withLock { state -> (Promise<QualityOfService>, UInt32?)? in
                late = state.held?.take(matching: matching) ?? []
                // What comes while these are handed over is kept, too.
                guard late.isEmpty else { return nil }
                guard let entry = state.router[filter] else {
                    state.leftFilters.removeAll { $0 == filter }
                    let entry = state.router.add(
                        subscription,
                        matching: matching,
                        listener: listener
                    )
                    return (entry.answer, entry.identifier)
                }
                state.router.add(listener, to: filter)
                // What is there is good enough, unless a better quality of service is wanted.
                guard entry.subscription.qualityOfService < subscription.qualityOfService else {
                    return (entry.answer, nil)
                }
                return (state.router.raise(filter, to: subscription), entry.identifier)
            }
            if let added { return added }
            deliver(late, to: listener)
        }
    }

    /// Notes what a connection was granted; should it have a successor already, that one asks for it, too.
    private func note(
        _ granted: QualityOfService,
        of filter: String,
        by session: MQTTSession,
        since begun: ContinuousClock.Instant?
    ) async throws {
        let (successor, entry) = state.withLock { state in
            // Unless everybody has left meanwhile.
            if state.router[filter] != nil {
                events.report(.subscribed(topic: filter, since: begun, qos: granted))
            }
            guard state.session !== session else {
                state.router.grant(filter, granted)
                return (MQTTSession?.none, MQTTSubscriptionEntry?.none)
            }
            state.router.establish(filter)
            return (state.session, state.router[filter])
        }
        if let successor, let entry { try await resubscribe([entry], over: successor) }
    }

    /// When the last listener leaves, the filter goes.
    private func listenerLeft(_ source: MessageSource, _ filter: String) {
        let session = state.withLock { state -> MQTTSession? in
            let isEstablished = state.router.isEstablished(filter)
            guard state.router.remove(source, from: filter) else { return nil }
            if isEstablished {
                events.report(.subscriptionEnded(topic: filter, cause: source.failure))
            }
            if state.session == nil { state.leftFilters.append(filter) }
            return state.session
        }
        guard let session else { return }
        session.leave(filter)
        // Somebody may have subscribed in between, and have been overtaken.
        let entry = state.withLock { $0.router[filter] }
        guard let entry else { return }
        Task { @concurrent in try? await resubscribe([entry], over: session) }
    }

    /// Ends every stream of a filter and tells the server, now or when there is a connection again.
    func unsubscribe(_ request: Request) async throws -> Receipt {
        let filter = request.topic ?? ""
        let session = state.withLock { $0.session }
        let receipt = try await session?.unsubscribe([filter], request)
        let sources = state.withLock { state in
            if session == nil { state.leftFilters.append(filter) }
            return remove(filter, from: &state, because: nil)
        }
        for source in sources {
            source.finish()
            pressure.forget(source)
        }
        return receipt ?? Receipt(topic: filter)
    }

    // MARK: Messages

    /// Hands a message to those who listen to its topic.
    func collect(
        _ publish: MQTTPublish,
        _ receipt: MQTTDeliveryReceipt?,
        into batch: inout MessageBatch
    ) {
        let listeners = state.withLock { $0.router.listeners(for: publish) }
        guard !listeners.isEmpty else { return hold(publish, receipt) }
        let message = MQTTMapping.message(publish)
        guard let receipt else { return batch.add(message, to: listeners) }
        batch.add(message, to: listeners, settling: receipt, by: self, manual: manual)
    }

    // MARK: Messages that nobody listens for yet

    /// Keeps a message for whoever subscribes late, or drops it.
    private func hold(_ publish: MQTTPublish, _ receipt: MQTTDeliveryReceipt?) {
        guard configuration.lateDelivery != nil,
            let gone = try? state.withClock(
                \.timers,
                environment.makeTimers,
                {
                    state,
                    clock in
                    let gone = state.held?.add(publish, receipt, at: clock.now) ?? []
                    watch(&state, clock)
                    return gone
                }
            )
        else { return drop(receipt) }
        for one in gone { drop(one.receipt) }
    }

    /// Nobody listens; the server is told all the same (MQTT 5, 4.5.0-2).
    private func drop(_ receipt: MQTTDeliveryReceipt?) {
        if let receipt { settle(receipt, Settlement()) }
    }

    /// Has the clock tell when the first message has been kept long enough, unless it will already.
    private func watch(_ state: inout State, _ clock: any TimerSource) {
        guard state.timer == nil, let deadline = state.held?.deadline else { return }
        state.timer = clock.scheduleTimer(at: deadline) { [weak self] in
            self?.dropExpired(at: deadline)
        }
    }

    /// Drops what has been kept long enough.
    /// - Parameter deadline: The time of the timer; the clock may lag behind by a little.
    private func dropExpired(at deadline: WireInstant) {
        let (gone, idle) = state.withLock {
            state -> ([MQTTHeldMessages.Held], (any TimerSource)?) in
            state.timer = nil
            guard let clock = state.timers else { return ([], nil) }
            let gone = state.held?.takeExpired(at: max(clock.now, deadline)) ?? []
            watch(&state, clock)
            guard state.timer == nil else { return (gone, nil) }
            state.timers = nil
            return (gone, clock)
        }
        idle?.invalidate()
        for one in gone { drop(one.receipt) }
    }

    private func dropHeld() {
        let (gone, clock) = state.withLock { state in
            defer { state.timers = nil }
            if let timer = state.timer.take() { state.timers?.cancelTimer(timer) }
            return (state.held?.takeAll() ?? [], state.timers)
        }
        clock?.invalidate()
        for one in gone { drop(one.receipt) }
    }

    /// Hands a listener what came before it.
    private func deliver(_ found: [MQTTHeldMessages.Held], to listener: MessageListener) {
        var batch = MessageBatch(reportingTo: events, hasQualities: true)
        for held in found {
            let message = MQTTMapping.message(held.publish)
            if let receipt = held.receipt {
                batch.add(message, to: [listener], settling: receipt, by: self, manual: manual)
            } else {
                batch.add(message, to: [listener])
            }
        }
        batch.deliver()
    }

    /// Settles a message that was subscribed to with manual acknowledgement.
    func settle(
        _ id: Message.ID,
        isAccepted: Bool,
        _ request: Request
    ) throws(WaybillError) -> Receipt {
        try manual.settle(id, Settlement(isAccepted: isAccepted), request)
    }

    func settle(_ receipt: MQTTDeliveryReceipt, _ settlement: Settlement) {
        let reason: MQTTReasonCode = settlement.isAccepted ? .success : .unspecifiedError
        keeper.acknowledge(receipt, reason)
    }
}
