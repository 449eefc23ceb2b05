import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Carries out what ``MQTTSubscriptionTable`` decides: sends, reports, answers callers, ends streams.
///
/// Outlives every connection, of which there is one at a time.
final class MQTTSubscriptions: Sendable {
    struct State: Sendable {
        var table: MQTTSubscriptionTable
        var suspicion = SubscriptionSuspicion()
        /// The present connection.
        var connection: MQTTConnection?
        /// When the connection before was lost.
        var lossTime: ContinuousClock.Instant?
        /// The number of calls that subscribe now.
        var subscribeCount = 0
    }

    let events: TransportEventSource
    let catchAll: CatchAll
    let state: Locked<State>
    private let shared: Shared<MQTTConfiguration>
    /// Keeps the filters that were left for the next launch; nil where no session outlives a connection.
    private let store: (any SessionStore)?
    private let session: MQTTSession
    var configuration: MQTTConfiguration { shared.value }
    let pressure: ReadingPressure
    /// Counts the messages that wait in memory.
    var account: MemoryAccount { pressure.account }
    let deliveries: MQTTDeliveries
    /// Holds the messages without a listener; nil when they are dropped.
    private let late: MQTTLateDelivery?
    private let unheard: UnheardMessages

    init(
        configuration shared: Shared<MQTTConfiguration>,
        session: MQTTSession,
        events: TransportEventSource,
        catchAll: CatchAll,
        account: MemoryAccount,
        environment: LinkEnvironment
    ) throws(WaybillError) {
        self.shared = shared
        let configuration = shared.value
        let store = configuration.keepsSession ? configuration.session.store : nil
        self.store = store
        self.session = session
        let left = try LeftMessages.reading { try store?.pendingUnsubscribes() ?? [] }
        state = Locked(State(table: MQTTSubscriptionTable(left: left)))
        self.events = events
        self.catchAll = catchAll
        let deliveries = MQTTDeliveries(session: session)
        self.deliveries = deliveries
        let unheard = UnheardMessages(reportingTo: events, by: environment.clock)
        self.unheard = unheard
        let policy = configuration.session.lateDelivery
        let holds = configuration.keepsSession && policy.timeToLive > .zero
        let held = MQTTHeldMessages(policy, memoryLimit: configuration.limits.memory)
        late = holds ? MQTTLateDelivery(held, deliveries, unheard, clock: environment.clock) : nil
        let clock = environment.clock
        pressure = ReadingPressure(account: account, reportingTo: events, by: clock)
    }

    // MARK: Connections

    /// Goes over to a connection that the server has accepted, with the session that it has kept or without.
    func attach(_ connection: MQTTConnection, hasSession: Bool, isOfOtherClient: Bool) {
        state.withLock { state in
            state.connection = connection
            state.table.connected(hasSession: hasSession, isOfOtherClient: isOfOtherClient)
        }
        guard hasSession, !isOfOtherClient else {
            // Before the first messages of this connection.
            deliveries.manual.removeAll()
            return
        }
        removeRepeated(connection.driver.repeatedSerials)
    }

    /// Lets go of a connection.
    func detach(_ connection: MQTTConnection) {
        let isPresent = state.withLock { state in
            guard state.connection === connection else { return false }
            state.connection = nil
            state.table.disconnected()
            state.lossTime = .now
            return true
        }
        guard isPresent else { return }
        pressure.detach()
        // The server delivers again what is not acknowledged; of QoS 2 it only wants to hear the outcome.
        deliveries.manual.remove { $0.qos != .exactlyOnce }
        if let left = late?.takeLeft() { session.abandon(left) }
    }

    /// Ends every stream, as no connection follows.
    ///
    /// - Parameters:
    ///   - cause: Why; nil if this side ended the connection.
    ///   - keepsSession: Whether the server keeps the session.
    /// - Returns: The messages that the app has not acknowledged, and no longer can.
    func conclude(_ cause: WaybillError?, keepsSession: Bool) -> [MQTTDeliveryReceipt] {
        let abandoned = deliveries.manual.removeAll() + (late?.forgetAll() ?? [])
        change { table, _ in table.conclude(cause, keepsSession: keepsSession) }
        pressure.forgetAll()
        return abandoned
    }

    // MARK: Listeners

    /// What a new listener waits for, and what is sent for it; nil when a filter waits for the next connection.
    private typealias Requested = (answers: [Promise<QoS>], requests: [MQTTFilterRequest])?

    /// Subscribes a new listener to all filters.
    ///
    /// Several filters go into one SUBSCRIBE, with one identifier (MQTT 5, 3.8.2.1.2), except filters that overlap: see
    /// ``MQTTIdentifierGroups``. A filter that the server refuses ends the listener, which leaves the others.
    func subscribe(
        _ all: [MQTTSubscription],
        _ request: Request,
        over connection: MQTTConnection
    ) async throws -> Messages<Message> {
        let properties = MQTTSubscribeMapping.properties(request)
        let limits = connection.driver.limits
        try properties.check(request, hasIdentifiers: limits.subscriptionIdentifiersAvailable)
        // Checked before any of them is sent.
        for one in all { if let error = limits.refusal(of: one, request) { throw error } }
        let listener = makeListener(all.map(\.filter), request.command)
        let messages = listener.source.messages
        state.withLock { $0.subscribeCount += 1 }
        defer { endSubscribing() }
        var held: [MQTTHeldMessages.Held] = []
        do {
            let added = add(listener, matching: all, &held) { state in
                !state.table.waits(for: all)
            } _: { state -> Result<Requested, WaybillError> in
                guard !state.table.isTaken(properties, for: all) else {
                    return .failure(MQTTErrorMapping.identifierTaken.about(request))
                }
                return .success(state.table.subscribe(listener, to: all, properties))
            }
            guard let (answers, requests) = try added?.get() else {
                throw WaybillError(.notConnected, "there is no connection").about(request)
            }
            let timeout = request.command[.timeout]
            for batch in requests.packets(
                within: limits,
                stated: configuration.limits.filtersPerPacket
            ) {
                var request = request
                request.topics = [EntryTopic(batch[0].filter)]
                _ = ask(batch, request, timeout, since: events.timestamp, over: connection)
            }
            var granted = QoS.exactlyOnce
            for answer in answers { granted = min(granted, try await answer.value()) }
            listener.source.grantedQoS = granted
            return messages
        } catch {
            end(listener, givingBack: held)
            throw error
        }
    }

    /// Has the server send what found no room over another connection, when no SUBSCRIBE waits for its answer.
    private func endSubscribing() {
        let connection = state.withLock { state in
            state.subscribeCount -= 1
            return state.subscribeCount == 0 ? state.connection : nil
        }
        guard let connection, late?.hasLeft == true, configuration.reconnection.isEnabled else {
            return
        }
        connection.makeAgain()
    }

    /// Ends a listener that has no filter, and holds the messages again that it was given.
    private func end(_ listener: MessageListener, givingBack held: [MQTTHeldMessages.Held]) {
        deliveries.spare(held.compactMap(\.receipt))
        listener.source.terminate()
        late?.putBack(held)
    }

    /// Subscribes a new listener with the next connection; a refusal, then, ends its stream.
    ///
    /// - Returns: The messages; nil when there is a connection already.
    /// - Throws: `invalidEntry` for an identifier that another subscription has.
    func subscribeLater(
        _ all: [MQTTSubscription],
        _ request: Request
    ) throws(WaybillError) -> Messages<Message>? {
        let properties = MQTTSubscribeMapping.properties(request)
        let listener = makeListener(all.map(\.filter), request.command)
        let messages = listener.source.messages
        var held: [MQTTHeldMessages.Held] = []
        let actions = add(listener, matching: all, &held) { state in
            state.connection == nil
        } _: { state -> Result<[MQTTSubscriptionAction], WaybillError> in
            guard !state.table.isTaken(properties, for: all) else {
                return .failure(MQTTErrorMapping.identifierTaken.about(request))
            }
            return .success(state.table.subscribeLater(listener, to: all, properties))
        }
        switch actions {
        case nil:
            if !held.isEmpty { end(listener, givingBack: held) }
            return nil
        case .success(let actions)?:
            change { _, _ in actions }
            return messages
        case .failure(let error)?:
            end(listener, givingBack: held)
            throw error
        }
    }

    private func makeListener(
        _ filters: [String],
        _ command: EntryCommand
    ) -> MessageListener {
        let leave = { @Sendable [weak self] (source: MessageSource) in
            for filter in filters {
                self?.change { table, _ in table.leave(source, filter, because: source.failure) }
            }
        }
        return MessageListener(
            command,
            buffering: configuration.buffering,
            topic: filters.first,
            events: events,
            onLeave: leave,
            onDrain: { [deliveries] source in
                // UNSUBSCRIBE leaves before the wait. A message that came during the wait would be acknowledged although
                // nobody gets it. A PUBACK may follow UNSUBSCRIBE, unlike an ACK of STOMP.
                leave(source)
                await deliveries.manual.drain(source)
            },
            pressure: pressure
        )
    }

    /// Adds a listener, after the messages that were held for it are on their way to it.
    ///
    /// `given` gets the messages that were held.
    ///
    /// - Returns: The result of `body`; nil where the listener may not be added.
    private func add<Added: Sendable>(
        _ listener: MessageListener,
        matching subscriptions: [MQTTSubscription],
        _ given: inout [MQTTHeldMessages.Held],
        where mayBeAdded: (State) -> Bool,
        _ body: (inout State) -> Added
    ) -> Added? {
        let matching = subscriptions.flatMap { MQTTRouter.patterns(of: $0.filter) }
        while true {
            var added: Added?
            let held = state.withLock { state -> [MQTTHeldMessages.Held] in
                guard mayBeAdded(state) else { return [] }
                let held = late?.take(matching: matching) ?? []
                // Messages that come while these are handed over are held, too.
                if held.isEmpty { added = body(&state) }
                return held
            }
            if held.isEmpty {
                saveLeft()
                return added
            }
            given += held
            var batch = MessageBatch(reportingTo: events, hasQualities: true)
            for one in held {
                let message = MQTTPublishMapping.message(one.publish)
                deliveries.add(message, one.receipt, to: [listener], in: &batch)
            }
            batch.deliver()
        }
    }

    /// Ends every stream of some filters, and tells the server now or when there is a connection again.
    ///
    /// One UNSUBSCRIBE has up to 100 filters, or as many as are stated, within the server's limit of a packet.
    ///
    /// - Returns: The receipt; of several packets the last, unless one states a reason.
    /// - Throws: The first refusal, after all packets; other errors at once.
    func unsubscribe(_ filters: [String], _ request: Request) async throws -> Receipt {
        let limits = state.withLock { $0.connection }?.driver.limits ?? MQTTServerLimits()
        let userProperties = request.headers.pairs
        var (receipt, refusal) = (Receipt(of: request.topic), WaybillError?.none)
        let stated = shared.value.limits.filtersPerPacket
        for batch in filters.batches(of: stated, within: limits, beside: userProperties, \.self) {
            do {
                let one = try await unsubscribe(packet: batch, request)
                if receipt.reason == nil { receipt = one }
            } catch let error as WaybillError where !error.leavesRequestOpen {
                refusal = refusal ?? error
            }
        }
        if let refusal { throw refusal }
        return receipt
    }

    private func unsubscribe(packet filters: [String], _ request: Request) async throws -> Receipt {
        while true {
            if let connection = state.withLock({ $0.connection }) {
                return try await connection.driver.unsubscribe(filters, request) { isConfirmed in
                    self.change { table, _ in
                        var actions: [MQTTSubscriptionAction] = []
                        for (index, filter) in filters.enumerated() {
                            switch isConfirmed?[index] {
                            case true?: actions += table.end(filter, because: nil)
                            case false?: break
                            case nil: table.unsubscribeFailed(filter)
                            }
                        }
                        return actions
                    }
                }
            }
            var isDone = false
            change { table, present in
                // A connection that has come meanwhile was told only of what had been left before.
                guard present == nil else { return [] }
                isDone = true
                return filters.flatMap { filter in
                    _ = table.left.add(filter)
                    return table.end(filter, because: nil)
                }
            }
            if isDone { return Receipt(topic: request.topic) }
        }
    }

    // MARK: Requests

    /// Sends requests in one packet and carries out the answer, whether or not the callers still wait for it.
    /// - Returns: Resolves when that is done.
    func ask(
        _ requests: [MQTTFilterRequest],
        _ request: Request,
        _ timeout: Duration?,
        since begun: ContinuousClock.Instant?,
        over connection: MQTTConnection
    ) -> Promise<Void> {
        let isAnswered = Promise<Void>()
        let requests = refuse(requests, beyond: connection.driver.limits, request, since: begun)
        guard !requests.isEmpty else {
            isAnswered.resolve(.success(()))
            return isAnswered
        }
        connection.driver.subscribe(
            requests.map(\.sent),
            identifier: requests.first?.identifier,
            userProperties: requests.first?.userProperties ?? [],
            request,
            timeout: timeout
        ) { answer in
            for (index, request) in requests.enumerated() {
                self.change(since: begun) { table, _ in
                    table.answered(request, answer.map { $0[index] })
                }
            }
            if case .success = answer { self.noteAnswered(requests) }
            isAnswered.resolve(answer.map { _ in }.mapError { $0 })
        }
        return isAnswered
    }

    /// Treats the filters that the server does not support as a SUBACK that refuses them.
    /// - Returns: The others.
    private func refuse(
        _ requests: [MQTTFilterRequest],
        beyond limits: MQTTServerLimits,
        _ request: Request,
        since begun: ContinuousClock.Instant?
    ) -> [MQTTFilterRequest] {
        requests.filter { one in
            guard let error = limits.refusal(of: one.subscription, request) else { return true }
            let grant = MQTTGrant(result: .failure(error), hasBacklog: false)
            change(since: begun) { table, _ in table.answered(one, .success(grant)) }
            noteAnswered([one])
            return false
        }
    }

    private func noteAnswered(_ requests: [MQTTFilterRequest]) {
        state.withLock { state in
            for request in requests { state.suspicion.noteAnswered(request.filter) }
        }
    }

    // MARK: Actions

    /// Changes the table and carries out the actions.
    ///
    /// - Parameters:
    ///   - begun: When the change was asked for.
    ///   - body: Changes the table; also gets the present connection.
    func change(
        since begun: ContinuousClock.Instant? = nil,
        _ body: (inout MQTTSubscriptionTable, MQTTConnection?) -> [MQTTSubscriptionAction]
    ) {
        let (actions, connection) = state.withLock { state in
            let actions = body(&state.table, state.connection)
            // With the lock held, so that the reports have the order of the changes.
            for case .report(let kind, let filter, let quality, let error) in actions {
                events.report(kind, filter, qos: quality, error, since: begun)
            }
            return (actions, state.connection)
        }
        saveLeft()
        for action in actions {
            switch action {
            case .report: break
            case .tell(let sources, let quality):
                for source in sources { source.grantedQoS = quality }
            case .answer(let answer, let result): answer.resolve(result.mapError { $0 })
            case .unsubscribe(let left):
                guard let connection else { break }
                connection.driver.leave(left.text) { [weak self] in self?.forget([left]) }
                // A SUBSCRIBE for a new listener may have left before this UNSUBSCRIBE.
                let (request, present) = state.withLock {
                    ($0.table.restore(left.text), $0.connection)
                }
                if let request { _ = restore([request], over: present ?? connection) }
            case .finish(let sources, let cause):
                for source in sources {
                    source.finish(throwing: cause)
                    pressure.forget(source)
                }
            }
        }
    }

    /// Stores the filters that were left if they have changed, with no lock held.
    private func saveLeft() {
        // Not under another client identifier: the next process leaves them in the session of its own one.
        guard let store, session.isStored else { return }
        while let filters = state.withLock({ $0.table.left.beginSaving() }) {
            store.setPendingUnsubscribes(filters)
            state.withLock { $0.table.left.endSaving() }
        }
    }

    // MARK: Messages

    /// Hands messages to the listeners of their topics.
    func collect(_ arrivals: MQTTArrivals, into batch: inout MessageBatch) {
        arrivals.forEachRun { run in
            var identifiers: [UInt32] = []
            // Not what the app has left itself.
            var isHeld = false
            let listeners = state.withLock { state in
                identifiers = state.table.chosenIdentifiers(of: run)
                let listeners = state.table.listeners(for: run)
                // With the lock held, so that a listener that comes gets the message here or there.
                isHeld = listeners.isEmpty && !state.table.left.matches(run.topic)
                if isHeld { late?.hold(run, of: arrivals) }
                return listeners
            }
            if listeners.isEmpty, !isHeld || late == nil { drop(run, of: arrivals) }
            deliveries.add(run, of: arrivals, to: listeners, naming: identifiers, in: &batch)
        }
    }

    /// Acknowledges and reports messages without a listener.
    private func drop(_ run: MQTTArrivals.Run, of arrivals: MQTTArrivals) {
        for index in run.indices {
            if let receipt = arrivals.receipt(at: index) { deliveries.drop(receipt) }
            unheard.report(run.topic, byteCount: arrivals.publish(at: index).payload.count)
        }
    }

    /// Drops the unread messages that the server sends again, so that copies do not pile up.
    private func removeRepeated(_ repeated: MQTTRepeatedSerials) {
        late?.remove(repeated)
        for source in state.withLock({ $0.table.sources }) {
            source.removeWaiting { delivery in
                guard let delivery = delivery as? Delivery<MQTTDeliveries> else { return false }
                return repeated.contains(delivery.name)
            }
        }
    }
}
