import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The subscriptions of a transport with their listeners: the shell of ``MQTTRouter``.
///
/// They outlive the connections, of which there is one at a time.
///
/// | after a loss | what follows |
/// | --- | --- |
/// | a connection with the session | SUBSCRIBE for the filters that the server lacks, UNSUBSCRIBE for those left meanwhile |
/// | a connection without the session | SUBSCRIBE for every filter |
/// | no connection | the messages of every listener end |
final class MQTTSubscriptions: DeliverySettler {
    struct State: Sendable {
        var router = MQTTRouter()
        /// The present connection; nil without one.
        var connection: MQTTConnection?
        /// Filters without a listener that the server may still have.
        var left: MQTTLeftFilters
        /// The messages without a listener; nil if none are kept.
        var held: MQTTHeldMessages?
        /// The timer for the deadline of the oldest held message.
        var timer: UInt64?
        /// The time at which the last connection was lost.
        var lossTime: ContinuousClock.Instant?
        /// Whether the subscriptions in the server's session were made with this router.
        var isFamiliar = false
    }

    /// Receives the events of subscriptions and messages.
    let events: TransportEventSource

    /// The listeners for all messages.
    let catchAll: CatchAll

    let state: Locked<State>
    let environment: LinkEnvironment
    private let shared: Shared<MQTTConfiguration>
    /// Stores the left filters for the next launch; nil if no session outlives a connection.
    private let store: (any SessionStore)?
    var configuration: MQTTConfiguration { shared.value }
    let session: MQTTSession
    let pressure: ReadingPressure
    /// Counts the waiting bytes, also those of earlier connections.
    var account: MemoryAccount { pressure.account }
    let manual = ManualDeliveries<MQTTSubscriptions>()

    /// - Parameters:
    ///   - shared: The configuration.
    ///   - session: The session.
    ///   - events: Receives the events of subscriptions and messages.
    ///   - catchAll: The listeners for all messages.
    ///   - account: Counts the waiting bytes.
    ///   - environment: Provides the clock.
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

    /// Changes to a connection that the server has accepted, with its stored session or without.
    func attach(_ connection: MQTTConnection, hasSession: Bool) {
        state.withLock { state in
            state.connection = connection
            if !state.isFamiliar || !hasSession { state.router.hasForeignIdentifiers = hasSession }
            state.isFamiliar = true
        }
        if hasSession { removeRepeated(connection.repeatedSerials) }
    }

    /// Releases a connection that is over.
    func detach(_ connection: MQTTConnection) {
        let isPresent = state.withLock { state in
            guard state.connection === connection else { return false }
            state.connection = nil
            state.lossTime = .now
            return true
        }
        guard isPresent else { return }
        pressure.detach()
        // The server sends unacknowledged messages of QoS 1 again. Those of QoS 2 can still be acknowledged.
        manual.remove { $0.qos != .exactlyOnce }
    }

    /// Removes a filter, and reports the end of its subscription.
    ///
    /// - Returns: The sources of its listeners.
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

    /// Ends the messages of every listener, because no connection follows.
    func conclude(_ cause: WaybillError?) {
        let sources = state.withLock { state in
            for filter in state.router.establishedFilters {
                events.report(.subscriptionEnded(topic: filter, cause: cause))
            }
            defer {
                state.router = MQTTRouter()
                state.isFamiliar = false
            }
            // A session that outlives the connection still has the left filters.
            if !configuration.keepsSession { state.left.removeAll() }
            return state.router.sources
        }
        manual.removeAll()
        dropHeld()
        for source in sources { source.finish(throwing: cause) }
        pressure.forgetAll()
    }

    // MARK: Listeners

    /// Directs the retained messages that follow a SUBACK to the listeners of its SUBSCRIBE.
    func noteAnswer(of asked: [MQTTAskedFilter], hasBacklog: Bool) {
        state.withLock { state in
            for one in asked { state.router.noteAnswer(of: one, hasBacklog: hasBacklog) }
        }
    }

    /// Subscribes a new listener.
    ///
    /// A filter is sent if no listener has it, if the new one wants a higher quality of service, or for its retained
    /// messages. Several filters go into one SUBSCRIBE, unless the server supports subscription identifiers, which
    /// belong to a whole packet (MQTT 5, 3.8.2.1.2). If the server refuses one filter, the listener ends and leaves the
    /// others.
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

    /// Adds a new listener that the next connection subscribes; a refusal then ends its messages.
    ///
    /// - Returns: The messages; nil if there is a connection.
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
            // After an overflow no further message would reach the consumer.
            onOverflow: leave
        )
    }

    /// A filter to send, with the promise of its answer.
    private struct Asked: Sendable {
        let filter: MQTTAskedFilter
        let answer: Promise<QoS>

        var text: String { filter.subscription.filter }
    }

    /// Sends filters in one packet, in a task of its own.
    ///
    /// Several calls may wait for the answers. Cancelling one of them does not affect the others.
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

    /// Restores a filter after its SUBSCRIBE has failed.
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
            // The server may have subscribed nevertheless.
            let left = isOpen && !sources.isEmpty ? state.left.add(filter) : nil
            return (sources, left, state.connection)
        }
        if let left { tell(present, left) }
        asked.answer.resolve(.failure(error))
        withExtendedLifetime(sources) {}
    }

    /// Adds a listener.
    ///
    /// - Returns: The promise of the server's answer, and the filter to send, if any. Nil if the next connection sends
    ///   the filter.
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
            // The connection has just ended, and this call does not wait for the next one.
            guard !entry.isDeferred else { return nil }
            return state.router.join(listener, subscription)
        }
    }

    /// Adds a listener, which first gets the held messages.
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
                // Messages that arrive during this delivery are also held.
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

    /// Notes a granted filter.
    ///
    /// If another connection has followed already, that one subscribes, too.
    private func note(
        _ granted: QoS,
        of filter: String,
        by connection: MQTTConnection,
        since begun: ContinuousClock.Instant?
    ) async throws {
        let (successor, entry) = state.withLock { state in
            // All listeners may have left meanwhile.
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

    /// Removes a listener, and unsubscribes the filter with its last listener.
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

    /// Ends the messages of a filter, and unsubscribes now or over the next connection.
    func unsubscribe(_ request: Request) async throws -> Receipt {
        let filter = request.topic ?? ""
        var receipt: Receipt?
        var sources: [MessageSource]?
        while sources == nil {
            let connection = state.withLock { $0.connection }
            receipt = try await connection?.unsubscribe([filter], request)
            sources = state.withLock { state in
                if connection == nil {
                    // A connection that has come meanwhile has already sent the left filters.
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

    // MARK: Filters without listeners

    /// Stores a left filter, and unsubscribes it; without a connection, the next one does.
    private func tell(_ connection: MQTTConnection?, _ left: MQTTLeftFilters.Filter) {
        saveLeft()
        guard let connection else { return }
        connection.leave(left.text) { [weak self] in self?.forgetLeft([left]) }
        // A new listener's SUBSCRIBE may have been sent before this UNSUBSCRIBE.
        let entry = state.withLock { $0.router[left.text] }
        guard let entry else { return }
        Task { @concurrent in try? await resubscribe([entry], over: connection) }
    }

    /// Forgets left filters that the server has removed.
    func forgetLeft(_ left: [MQTTLeftFilters.Filter]) {
        state.withLock { $0.left.remove(left) }
        saveLeft()
    }

    /// Stores the left filters if they have changed; one thread at a time, with no lock held.
    func saveLeft() {
        guard let store else { return }
        while let filters = state.withLock({ $0.left.beginSaving() }) {
            store.setPendingUnsubscribes(filters)
            state.withLock { $0.left.endSaving() }
        }
    }
}
