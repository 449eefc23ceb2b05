import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Carries out what ``STOMPSubscriptionTable`` decides: sends, reports, ends streams.
///
/// Outlives every connection, of which there is one at a time. The server delivers again what was not acknowledged.
final class STOMPSubscriptions: MessageAcknowledger {
    private struct State: Sendable {
        var table = STOMPSubscriptionTable()
        var suspicion = SubscriptionSuspicion()
        /// The present connection.
        var connection: STOMPConnection?
        /// When the connection before was lost.
        var lossTime: ContinuousClock.Instant?
    }

    let events: TransportEventSource
    let catchAll: CatchAll
    private let state = Locked(State())
    private let shared: Shared<STOMPConfiguration>
    private var configuration: STOMPConfiguration { shared.value }
    /// Stops reading while at least one subscription has too many messages that wait.
    let pressure: ReadingPressure
    let manual = ManualDeliveries<STOMPSubscriptions>()
    let unheard: UnheardMessages

    init(
        configuration shared: Shared<STOMPConfiguration>,
        events: TransportEventSource,
        catchAll: CatchAll,
        account: MemoryAccount,
        clock: any TimerSource
    ) {
        self.shared = shared
        unheard = UnheardMessages(reportingTo: events, by: clock)
        self.events = events
        self.catchAll = catchAll
        pressure = ReadingPressure(account: account, reportingTo: events, by: clock)
    }

    // MARK: Connections

    /// The connection that the server has accepted; nil without one.
    var connection: STOMPConnection? { state.withLock { $0.connection } }

    /// Goes over to a connection that the server has accepted.
    func attach(_ connection: STOMPConnection, _ version: STOMPVersion) {
        state.withLock { state in
            state.connection = connection
            state.table.connected(version)
        }
    }

    /// Lets go of a connection that is over.
    ///
    /// - Returns: What the end says about the subscriptions, for ``note(_:_:)``.
    func detach(
        _ connection: STOMPConnection,
        _ end: ReplaySuspicion.End
    ) -> SubscriptionSuspicion.Verdict {
        let verdict = state.withLock { state -> SubscriptionSuspicion.Verdict? in
            guard state.connection === connection else { return nil }
            state.connection = nil
            state.lossTime = .now
            return state.suspicion.noteEnd(end)
        }
        guard let verdict else { return .none }
        pressure.detach()
        manual.removeAll()
        return verdict
    }

    /// Ends the subscription that the server answers by ending each connection.
    func note(_ verdict: SubscriptionSuspicion.Verdict, _ cause: WaybillError?) {
        guard case .proven(let id) = verdict,
            (cause?.underlying as? STOMPServerError)?.isLocked != true
        else { return }
        var ended: STOMPSubscription?
        change { table, _ in
            ended = table[id]
            let topic = ended?.request.destination ?? ""
            return table.refused(id, .rejectedSubscription(to: topic, after: cause))
        }
        if let ended { forgetMessages(of: [ended]) }
    }

    /// Makes every subscription again, one after another if ``WaybillSession/SubscriptionSuspicion`` says so.
    ///
    /// A subscription that the server refuses ends with the refusal, and the connection with it: the next connection
    /// makes the others.
    func resume(over connection: STOMPConnection) async throws {
        let (found, isAlone) = state.withLock { state in
            let found = state.table.resume()
            return (state.suspicion.begin(found, \.id), state.suspicion.isAlone)
        }
        for subscription in found { updatePressure(of: subscription.id) }
        try await withThrowingTaskGroup { group in
            for subscription in found {
                if isAlone { state.withLock { $0.suspicion.noteSent(subscription.id) } }
                group.addTask { try await self.restore(subscription, over: connection) }
                if isAlone { try await group.next() }
            }
            try await group.waitForAll()
        }
        // Not before: held back, the server could not answer.
        pressure.attach { [driver = connection.driver] in driver.setReading($0) }
        connection.driver.endOpening()
        // The connection may have ended meanwhile: then the pressure must not keep it.
        if state.withLock({ $0.connection !== connection }) { pressure.detach() }
    }

    private func restore(
        _ subscription: STOMPSubscription,
        over connection: STOMPConnection
    ) async throws {
        let id = subscription.id
        let topic = subscription.request.destination
        let request = Request(topic: topic, command: .subscribe)
        let noteAnswer = { @Sendable [self] in state.withLock { $0.suspicion.noteAnswered(id) } }
        // The listener may have left while others were restored.
        let isThere = state.withLock { state in
            guard state.table[id]?.order == subscription.order else { return false }
            state.table.beginRequests([id])
            return true
        }
        guard isThere else { return noteAnswer() }
        defer { state.withLock { $0.table.endRequests([id]) } }
        do {
            try await connection.subscribe(
                subscription.request,
                as: id,
                request,
                didConfirm: noteAnswer
            )
            // Without a receipt nothing else confirms it.
            noteAnswer()
            let lossTime = state.withLock { $0.lossTime }
            change(over: connection, since: lossTime) { table, _ in table.restored(id) }
        } catch let error as WaybillError where error.code == .rejected {
            // A lock may be that of the connection before, which the server has not missed yet.
            if (error.underlying as? STOMPServerError)?.isLocked != true {
                change(over: connection) { table, _ in table.refused(id, error) }
                forgetMessages(of: [subscription])
            }
            throw STOMPMapping.lostByRefusal(error)
        }
    }

    /// Ends every stream, as no connection follows.
    func conclude(_ cause: WaybillError?) {
        manual.removeAll()
        change { table, _ in table.conclude(cause) }
        pressure.forgetAll()
    }

    /// Puts a message back that could not be acknowledged, as long as its connection lasts.
    func putBack(_ delivery: Delivery<STOMPSubscriptions>, as id: Message.ID) {
        // With the lock, so that it does not come behind the end of its connection.
        state.withLock { state in
            guard state.connection != nil, state.table.connection == delivery.name.connection else {
                return
            }
            manual.putBack(delivery, as: id)
        }
    }

    // MARK: Listeners

    /// Makes a subscription to each destination, with an id of its own; all have one listener.
    func subscribe(
        _ all: [STOMPSubscribe],
        _ request: Request,
        over connection: STOMPConnection
    ) async throws -> Messages<Message> {
        let (ids, source, _) = try add(all, request, .subscribing)
        defer { state.withLock { $0.table.endRequests(ids) } }
        let messages = source.messages
        do {
            for ((id, subscription), part) in zip(zip(ids, all), request.partsByTopic) {
                try await subscribe(subscription, as: id, part, over: connection)
            }
            return messages
        } catch {
            // Ends those that the server has confirmed already, too.
            source.terminate()
            throw error
        }
    }

    private func subscribe(
        _ subscription: STOMPSubscribe,
        as id: String,
        _ request: Request,
        over connection: STOMPConnection
    ) async throws {
        let begun = events.timestamp
        var isConfirmed = false
        do {
            try await connection.subscribe(subscription, as: id, request)
            isConfirmed = true
            try await confirm(id, over: connection, since: begun)
        } catch {
            if !isConfirmed {
                let (topic, reason) = (request.topic, WaybillError(reporting: error))
                events.report(.subscriptionRefused(topic: topic, since: begun, error: reason))
            }
            throw error
        }
    }

    /// Makes a subscription with the next connection; a refusal, then, ends its stream.
    /// - Returns: The messages; nil when there is a connection already.
    func subscribeLater(
        _ all: [STOMPSubscribe],
        _ request: Request
    ) throws(WaybillError) -> Messages<Message>? {
        let (_, source, isAdded) = try add(all, request, .wanted)
        let messages = source.messages
        return isAdded ? messages : nil
    }

    /// The ids of subscriptions: that of the entry, or new ones.
    private func makeIDs(
        for all: [STOMPSubscribe],
        _ request: Request
    ) throws(WaybillError) -> [String] {
        guard let id = all.first?.identifier else {
            return state.withLock { $0.table.makeIDs(all.count) }
        }
        // The subscription to the replies has its destination as its id.
        let isFree = configuration.replyDestination != id && state.withLock { $0.table.reserve(id) }
        guard isFree else { throw STOMPMapping.error(.subscriptionIDTaken, request) }
        return [id]
    }

    /// Adds subscriptions with one listener; wanted ones only while there is no connection.
    private func add(
        _ all: [STOMPSubscribe],
        _ request: Request,
        _ initial: STOMPSubscription.State
    ) throws(WaybillError) -> (ids: [String], source: MessageSource, isAdded: Bool) {
        let command = request.command
        let ids = try makeIDs(for: all, request)
        let listener = MessageListener(
            command,
            buffering: configuration.buffering,
            topic: all.first?.destination,
            events: events,
            onLeave: { [weak self] source in
                for id in ids { self?.leave(id, of: source, because: source.failure) }
            },
            onDrain: { [manual] in await manual.drain($0) },
            pressure: pressure
        )
        let policy = command[.buffering] ?? configuration.buffering
        let isAdded = state.withLock { state in
            guard initial != .wanted || state.connection == nil else {
                state.table.release(ids)
                return false
            }
            state.table.subscribe(listener, policy, to: Array(zip(ids, all)), initial)
            if initial == .subscribing { state.table.beginRequests(ids) }
            return true
        }
        return (ids, listener.source, isAdded)
    }

    /// Notes that the server has confirmed a subscription; a connection that has followed meanwhile makes it, too.
    private func confirm(
        _ id: String,
        over connection: STOMPConnection,
        since begun: ContinuousClock.Instant?
    ) async throws {
        var successor: STOMPConnection?
        let again = change(over: connection, since: begun) { table, present in
            successor = present === connection ? nil : present
            return table.confirmed(id, hasSuccessor: successor != nil)
        }
        if let successor, let again { try await restore(again, over: successor) }
    }

    /// Ends a subscription without a listener.
    private func leave(_ id: String, of source: MessageSource, because cause: WaybillError?) {
        var ended: STOMPSubscription?
        change { table, _ in
            ended = table[id]
            return table.leave(id, of: source, because: cause)
        }
        if let ended, ended.listener.source === source { forgetMessages(of: [ended]) }
    }

    /// Ends every subscription to a destination.
    func unsubscribe(_ headers: STOMPHeaders, _ request: Request) async throws -> Receipt {
        // Refused before anything ends.
        if let id = request.command[.receipt]?.chosenIdentifier, let present = self.connection,
            let fault = present.driver.withCore(.paced, { core, _ in core.receiptFault(of: id) })
        {
            throw STOMPMapping.error(fault, request)
        }
        var ended: [STOMPSubscription] = []
        var connection: STOMPConnection?
        change { table, present in
            let actions: [STOMPSubscriptionAction]
            (ended, actions) = table.unsubscribe(request.topic ?? "")
            table.beginRequests(ended.map(\.id))
            connection = present
            return actions
        }
        guard !ended.isEmpty else {
            return Receipt(topic: request.topic, reason: "no subscription existed")
        }
        forgetMessages(of: ended)
        defer {
            state.withLock { $0.table.endRequests(ended.map(\.id)) }
            for subscription in ended {
                subscription.listener.source.finish()
                pressure.forget(subscription.listener.source)
            }
        }
        // Without a connection there is nothing left to end.
        guard let connection else { return Receipt(of: request.topic) }
        var failure: (any Error)?
        for subscription in ended {
            let frame = STOMPRequest.unsubscribe(id: subscription.id, headers: headers)
            var isSent = false
            do {
                // Nothing of this can be taken back, so a receipt that was taken meanwhile does not stop it.
                _ = try await connection.perform(frame, request, replacingTakenID: true) {
                    isSent = true
                }
            } catch {
                // All subscriptions end, also after an error. A call that was cancelled may have sent nothing.
                failure = failure ?? error
                if !isSent { connection.leave(subscription.id, headers) }
            }
        }
        if let failure { throw failure }
        return Receipt(of: request.topic)
    }

    /// Forgets the messages of subscriptions that have ended: they can no longer be acknowledged.
    private func forgetMessages(of ended: [STOMPSubscription]) {
        for subscription in ended { updatePressure(of: subscription.id) }
        let generations = Set(ended.map(\.order))
        manual.remove(byEnd: true) { generations.contains($0.generation) }
    }

    // MARK: Actions

    /// Changes the table and carries out the actions.
    ///
    /// - Parameters:
    ///   - connection: The connection that is told of the change; nil for the present one.
    ///   - begun: When the change was asked for.
    ///   - body: Changes the table; also gets the present connection.
    /// - Returns: A subscription that is to be made over the present connection.
    @discardableResult
    private func change(
        over connection: STOMPConnection? = nil,
        since begun: ContinuousClock.Instant? = nil,
        _ body: (inout STOMPSubscriptionTable, STOMPConnection?) -> [STOMPSubscriptionAction]
    ) -> STOMPSubscription? {
        let (actions, present) = state.withLock { state in
            let actions = body(&state.table, state.connection)
            // With the lock held, so that the reports have the order of the changes.
            for case .report(let kind, let topic, let error) in actions {
                events.report(kind, topic, error, since: begun)
            }
            return (actions, state.connection)
        }
        var again: STOMPSubscription?
        for action in actions {
            switch action {
            case .report: break
            case .subscribe(let subscription): again = subscription
            case .unsubscribe(let id): (connection ?? present)?.leave(id)
            case .finish(let source, let cause): source.finish(throwing: cause)
            }
        }
        return again
    }

    // MARK: Messages

    /// Hands a message to its listener.
    /// - Returns: Whether it belongs to a subscription.
    func collect(
        _ frame: STOMPFrame,
        _ token: STOMPAckToken?,
        of id: String,
        into batch: inout MessageBatch
    ) -> Bool {
        let (subscription, connection, isUnacknowledged) = state.withLock { state in
            if token != nil { state.table.received(id, byteCount: frame.body.count) }
            let isUnacknowledged = token == nil && state.table.receivedUnacknowledged(id)
            return (state.table[id], state.table.connection, isUnacknowledged)
        }
        guard let subscription else { return false }
        if isUnacknowledged {
            let topic = subscription.request.destination
            events.report(.unsupported(STOMPMapping.acknowledgementMissing, topic: topic))
        }
        let listener = subscription.listener
        let message = STOMPMapping.message(frame, isAcknowledged: token != nil)
        guard let token else {
            batch.add(message, to: [listener])
            return true
        }
        if subscription.isTooSlow {
            guard subscription.holdsBack else {
                if batch.isWatched { batch.show(message) }
                batch.deliver()
                failSlow(subscription, message.topic)
                return true
            }
            updatePressure(of: id)
        }
        let name = STOMPDeliveryName(
            token: token,
            generation: subscription.order,
            connection: connection,
            number: subscription.received.messages,
            byteCount: UInt64(clamping: frame.body.count),
            totalByteCount: subscription.received.bytes
        )
        batch.add(message, to: [listener], acknowledging: name, by: self, manual: manual)
        return true
    }

    /// Ends a subscription whose messages are not acknowledged; the server delivers them again.
    private func failSlow(_ subscription: STOMPSubscription, _ topic: String) {
        let policy = subscription.policy
        let error = WaybillError(
            .slowConsumer,
            "more than \(policy.messageLimit) messages or \(policy.byteLimit) bytes wait to be acknowledged",
            topic: topic
        )
        subscription.listener.source.finish(throwing: error)
        leave(subscription.id, of: subscription.listener.source, because: error)
    }

    /// Acknowledges a message that the consumer has taken; the server delivers any other again.
    func acknowledge(_ name: STOMPDeliveryName, _ acknowledgement: Acknowledgement) {
        noteAcknowledged(name, withEarlier: acknowledgement.isTaken)
        guard acknowledgement.isTaken else { return }
        let connection = state.withLock { state in
            state.table.connection == name.connection ? state.connection : nil
        }
        guard let connection else { return }
        connection.acknowledge(name.token)
        acknowledgeSkipped(name.token.subscriptionID, over: connection)
    }

    /// Notes a message that was skipped, whose acknowledgement covers all before it.
    func skip(_ token: STOMPAckToken, over connection: STOMPConnection) {
        state.withLock { $0.table.skipped(token) }
        acknowledgeSkipped(token.subscriptionID, over: connection)
    }

    /// Acknowledges skipped messages as soon as everything before them is acknowledged: a server with a limit of
    /// unacknowledged messages would otherwise send no more.
    func acknowledgeSkipped(_ id: String, over connection: STOMPConnection) {
        let token = state.withLock { state in
            state.connection === connection ? state.table.takeSkipped(id) : nil
        }
        guard let token else { return }
        connection.acknowledge(token)
        updatePressure(of: id)
    }

    /// ACK repeats the id that the server has chosen, of any length.
    static func acknowledgementByteCount(of name: STOMPDeliveryName) -> Int {
        name.token.identifier.utf8.count
    }

    /// Notes that a message does not wait any longer, and all before it where that is how it is acknowledged.
    ///
    /// - Parameters:
    ///   - name: The message.
    ///   - hasEarlier: Whether those before it were acknowledged with it; not if it was dropped.
    func noteAcknowledged(_ name: STOMPDeliveryName, withEarlier hasEarlier: Bool = true) {
        let id = name.token.subscriptionID
        let subscription = state.withLock { $0.table.acknowledged(name) }
        guard let subscription else { return }
        if subscription.holdsBack { updatePressure(of: id) }
        guard hasEarlier, subscription.isCumulative, subscription.listener.isManual else { return }
        manual.remove { $0.generation == name.generation && $0.number <= name.number }
    }

    /// Holds the server back while too many messages of a subscription wait to be acknowledged.
    private func updatePressure(of id: String) {
        pressure.update(id) { state.withLock { $0.table[id]?.isTooSlow ?? false } }
    }
}
