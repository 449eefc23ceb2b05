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
    struct State: Sendable {
        var router = MQTTRouter()
        /// The connection that there is.
        var connection: MQTTConnection?
        /// Filters that the server may still have, and nobody any longer.
        var left: MQTTLeftFilters
        /// What nobody listens for yet; nil when nothing is kept.
        var held: MQTTHeldMessages?
        /// The timer for the first message of those.
        var timer: UInt64?
        /// When the connection before was lost.
        var lossTime: ContinuousClock.Instant?
        /// Whether what the server's session has was subscribed to with this router.
        var isFamiliar = false
    }

    /// Where it is reported what becomes of subscriptions and messages.
    let events: TransportEventSource

    /// Who looks on.
    let catchAll: CatchAll

    let state: Locked<State>
    let environment: LinkEnvironment
    private let shared: Shared<MQTTConfiguration>
    /// Where what was left is kept for the next launch; nil where no session outlives a connection.
    private let store: (any SessionStore)?
    var configuration: MQTTConfiguration { shared.value }
    let session: MQTTSession
    let pressure: ReadingPressure
    /// What waits in memory, whichever connection it came over.
    var account: MemoryAccount { pressure.account }
    let manual = ManualDeliveries<MQTTSubscriptions>()

    /// - Parameters:
    ///   - shared: How messages are buffered.
    ///   - session: The session.
    ///   - events: Where it is reported what becomes of subscriptions and messages.
    ///   - catchAll: Who looks on.
    ///   - account: What waits in memory.
    ///   - environment: Where clocks come from.
    init(
        configuration shared: Shared<MQTTConfiguration>,
        session: MQTTSession,
        events: TransportEventSource,
        catchAll: CatchAll,
        account: MemoryAccount,
        environment: LinkEnvironment
    ) {
        let configuration = shared.value
        store = configuration.keepsSession ? configuration.store : nil
        state = Locked(
            State(
                left: MQTTLeftFilters(store?.pendingUnsubscribes() ?? []),
                held: configuration.lateDelivery.map { MQTTHeldMessages($0) }
            )
        )
        self.environment = environment
        self.shared = shared
        self.events = events
        self.session = session
        self.catchAll = catchAll
        pressure = ReadingPressure(account: account)
    }

    // MARK: Connections

    /// Goes over to a connection that the server has accepted, with the session that it has kept or without.
    func attach(_ connection: MQTTConnection, hasSession: Bool) {
        state.withLock { state in
            state.connection = connection
            if !state.isFamiliar || !hasSession { state.router.hasForeignIdentifiers = hasSession }
            state.isFamiliar = true
        }
        if hasSession { removeRepeated(connection.repeatedSerials) }
    }

    /// Lets go of a connection that is over.
    func detach(_ connection: MQTTConnection) {
        let isPresent = state.withLock { state in
            guard state.connection === connection else { return false }
            state.connection = nil
            state.lossTime = .now
            return true
        }
        guard isPresent else { return }
        pressure.detach()
        // The server delivers again what is not acknowledged; of QoS 2 it only wants to hear the outcome.
        manual.remove { $0.qos != .exactlyOnce }
    }

    /// Removes a filter, and reports it.
    /// - Returns: Who listened.
    func remove(
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
                state.isFamiliar = false
            }
            // A session that goes on without a connection still has them.
            if !configuration.keepsSession { state.left.removeAll() }
            return state.router.sources
        }
        manual.removeAll()
        dropHeld()
        for source in sources { source.finish(throwing: cause) }
        pressure.forgetAll()
    }

    // MARK: Listeners

    /// Has the retained messages that follow a SUBACK go to those that the SUBSCRIBE was sent for.
    func noteAnswer(of asked: [MQTTAskedFilter], hasBacklog: Bool) {
        state.withLock { state in
            for one in asked { state.router.noteAnswer(of: one, hasBacklog: hasBacklog) }
        }
    }

    /// Subscribes a new listener; a filter is sent if no other has it, or not as good, or for its retained messages.
    ///
    /// Several filters go into one SUBSCRIBE, unless the server names them by identifiers, which belong to a whole packet
    /// (MQTT 5, 3.8.2.1.2). A filter that the server refuses ends the listener, which leaves the others.
    func subscribe(
        _ all: [MQTTSubscription],
        _ request: Request,
        _ options: SubscribeOptions,
        over connection: MQTTConnection
    ) async throws -> Messages<Message> {
        let listener = makeListener(all.map(\.filter), options)
        let messages = listener.source.messages
        do {
            var answers: [Promise<QoS>] = []
            var asked: [Asked] = []
            for subscription in all {
                guard let (answer, filter) = add(listener, subscription) else {
                    throw WaybillError(.notConnected, "there is no connection").about(request)
                }
                if let filter { asked.append(Asked(filter: filter, answer: answer)) }
                answers.append(answer)
            }
            for batch in connection.batches(of: asked) {
                ask(for: batch, request, options, over: connection)
            }
            var granted = QoS.exactlyOnce
            for answer in answers { granted = min(granted, try await answer.value()) }
            listener.source.grantedQoS = granted
            return messages
        } catch {
            listener.source.terminate()
            throw error
        }
    }

    /// Subscribes a new listener with the next connection; a refusal, then, ends its stream.
    /// - Returns: The messages; nil when there is a connection already.
    func subscribeLater(
        _ all: [MQTTSubscription],
        _ options: SubscribeOptions
    ) -> Messages<Message>? {
        let listener = makeListener(all.map(\.filter), options)
        let messages = listener.source.messages
        let isAdded = add(listener, matching: all) { state in
            guard state.connection == nil else { return false }
            for subscription in all { state.router.addLater(listener, subscription) }
            return true
        }
        return isAdded ? messages : nil
    }

    private func makeListener(
        _ filters: [String],
        _ options: SubscribeOptions
    ) -> MessageListener {
        if filters.count > 1 { state.withLock { $0.router.sharesListeners = true } }
        let leave = { @Sendable [weak self] (source: MessageSource) in
            for filter in filters { self?.listenerLeft(source, filter) }
        }
        return MessageListener(
            options,
            buffering: configuration.buffering,
            topic: filters.first,
            events: events,
            onLeave: leave,
            pressure: pressure,
            // Not only when the stream is let go of: nothing that comes would reach anybody.
            onOverflow: leave
        )
    }

    /// A filter that is to be sent, and what waits for the answer.
    private struct Asked: Sendable {
        let filter: MQTTAskedFilter
        let answer: Promise<QoS>

        var text: String { filter.subscription.filter }
    }

    /// Has filters sent in one packet, for all who wait for their answers: one of them may be cancelled, the others go
    /// on.
    private func ask(
        for asked: [Asked],
        _ request: Request,
        _ options: SubscribeOptions,
        over connection: MQTTConnection
    ) {
        guard let first = asked.first else { return }
        let begun = events.timestamp
        var request = request
        request.topics = [first.text]
        Task { @concurrent [request] in
            let results: [Result<QoS, WaybillError>]
            do {
                results = try await connection.subscribe(
                    asked.map(\.filter.subscription),
                    identifier: asked.count == 1 ? first.filter.identifier : nil,
                    request,
                    timeout: options.timeout,
                    didAnswer: { [weak self] hasBacklog in
                        self?.noteAnswer(of: asked.map(\.filter), hasBacklog: hasBacklog)
                    }
                )
            } catch {
                for one in asked { fail(one, error, isConfirmed: false, since: begun) }
                return
            }
            for (one, result) in zip(asked, results) {
                switch result {
                case .success(let granted):
                    do {
                        try await note(granted, of: one.text, by: connection, since: begun)
                        one.answer.resolve(.success(granted))
                    } catch {
                        fail(one, error, isConfirmed: true, since: begun)
                    }
                case .failure(var error):
                    error.topic = one.text
                    fail(one, error, isConfirmed: false, since: begun)
                }
            }
        }
    }

    /// Goes back to what a filter was before it was asked for in vain.
    private func fail(
        _ asked: Asked,
        _ error: any Error,
        isConfirmed: Bool,
        since begun: ContinuousClock.Instant?
    ) {
        let filter = asked.text
        if !isConfirmed {
            let reason = WaybillError(reporting: error)
            events.report(.subscriptionRefused(topic: filter, since: begun, error: reason))
        }
        let isOpen = !isConfirmed && Self.leavesOpen(WaybillError(reporting: error))
        let (sources, left, present) = state.withLock { state in
            state.router.forget(asked.filter)
            let sources = state.router.revoke(filter, asked.answer)
            // The server may have it all the same.
            let left = isOpen && !sources.isEmpty ? state.left.add(filter) : nil
            return (sources, left, state.connection)
        }
        if let left { tell(present, left) }
        asked.answer.resolve(.failure(error))
        withExtendedLifetime(sources) {}
    }

    /// Adds a listener.
    /// - Returns: What resolves when the server has answered, and what is to be sent; nil when that is left to the next
    ///   connection.
    private func add(
        _ listener: MessageListener,
        _ subscription: MQTTSubscription
    ) -> (Promise<QoS>, MQTTAskedFilter?)? {
        let filter = subscription.filter
        return add(listener, matching: [subscription]) { state in
            guard let entry = state.router[filter] else {
                let entry = state.router.add(subscription, listener: listener)
                return (entry.answer, state.router.ask(for: filter))
            }
            // Over a connection that is over already, nobody waits for the next one.
            guard !entry.isDeferred else { return nil }
            return state.router.join(listener, subscription)
        }
    }

    /// Adds a listener, which first gets what came before it.
    private func add<Added: Sendable>(
        _ listener: MessageListener,
        matching subscriptions: [MQTTSubscription],
        _ body: (inout State) -> Added
    ) -> Added {
        let matching = subscriptions.map { MQTTRouter.matched(by: $0.filter) }
        while true {
            var late: [MQTTHeldMessages.Held] = []
            let added = state.withLock { state -> Added? in
                late = matching.flatMap { state.held?.take(matching: $0) ?? [] }
                // What comes while these are handed over is kept, too.
                guard late.isEmpty else { return nil }
                for subscription in subscriptions { state.left.remove(subscription.filter) }
                return body(&state)
            }
            if let added {
                saveLeft()
                return added
            }
            deliver(late, to: listener)
        }
    }

    /// Notes what a connection was granted; should it have a successor already, that one asks for it, too.
    private func note(
        _ granted: QoS,
        of filter: String,
        by connection: MQTTConnection,
        since begun: ContinuousClock.Instant?
    ) async throws {
        let (successor, entry) = state.withLock { state in
            // Unless everybody has left meanwhile.
            if state.router[filter] != nil {
                events.report(.subscribed(topic: filter, since: begun, qos: granted))
            }
            guard state.connection !== connection else {
                state.router.grant(filter, granted)
                return (MQTTConnection?.none, MQTTSubscriptionEntry?.none)
            }
            state.router.establish(filter)
            return (state.connection, state.router[filter])
        }
        if let successor, let entry { try await resubscribe([entry], over: successor) }
    }

    /// When the last listener leaves, the filter goes.
    private func listenerLeft(_ source: MessageSource, _ filter: String) {
        let (connection, left) = state.withLock {
            state -> (MQTTConnection?, MQTTLeftFilters.Filter?) in
            let isEstablished = state.router.isEstablished(filter)
            guard state.router.remove(source, from: filter) else { return (nil, nil) }
            if isEstablished {
                events.report(.subscriptionEnded(topic: filter, cause: source.failure))
            }
            return (state.connection, state.left.add(filter))
        }
        if let left { tell(connection, left) }
    }

    /// Ends every stream of a filter and tells the server, now or when there is a connection again.
    func unsubscribe(_ request: Request) async throws -> Receipt {
        let filter = request.topic ?? ""
        var receipt: Receipt?
        var sources: [MessageSource]?
        while sources == nil {
            let connection = state.withLock { $0.connection }
            receipt = try await connection?.unsubscribe([filter], request)
            sources = state.withLock { state in
                if connection == nil {
                    // The one that is there by now has been told of all that was left before.
                    guard state.connection == nil else { return nil }
                    _ = state.left.add(filter)
                }
                return remove(filter, from: &state, because: nil)
            }
        }
        saveLeft()
        for source in sources ?? [] {
            source.finish()
            pressure.forget(source)
        }
        return receipt ?? Receipt(topic: filter)
    }

    // MARK: What nobody listens to any longer

    /// Stores that a filter was left, and has the server forget it; without a connection, the next one does.
    private func tell(_ connection: MQTTConnection?, _ left: MQTTLeftFilters.Filter) {
        saveLeft()
        guard let connection else { return }
        connection.leave(left.text) { [weak self] in self?.forgetLeft([left]) }
        // Somebody may have subscribed in between, and have been overtaken.
        let entry = state.withLock { $0.router[left.text] }
        guard let entry else { return }
        Task { @concurrent in try? await resubscribe([entry], over: connection) }
    }

    /// Forgets filters that the server has forgotten.
    func forgetLeft(_ left: [MQTTLeftFilters.Filter]) {
        state.withLock { $0.left.remove(left) }
        saveLeft()
    }

    /// Stores what has changed since it was stored; one caller at a time, with no lock held.
    func saveLeft() {
        guard let store else { return }
        while let filters = state.withLock({ $0.left.beginSaving() }) {
            store.setPendingUnsubscribes(filters)
            state.withLock { $0.left.endSaving() }
        }
    }
}
