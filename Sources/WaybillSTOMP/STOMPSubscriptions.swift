import STOMPWire
import Waybill
import WaybillSession
import WireCore

/// The subscriptions of a transport with their listeners.
///
/// They outlive the connections, of which there is one at a time. STOMP has no sessions: each connection subscribes
/// again under the same ids, and the server delivers unacknowledged messages again.
final class STOMPSubscriptions: DeliverySettler {
    private struct State: Sendable {
        /// The subscriptions by the ids that this side has made.
        var subscriptions: [String: STOMPSubscription] = [:]
        var lastSubscription: UInt64 = 0
        /// The present connection; nil without one.
        var connection: STOMPConnection?
        /// The number of the last connection.
        var connectionNumber: UInt64 = 0
        /// The time at which the last connection was lost.
        var lossTime: ContinuousClock.Instant?
    }

    /// Receives the events of subscriptions and messages.
    let events: TransportEventSource
    /// The listeners for all messages.
    let catchAll: CatchAll
    private let state = Locked(State())
    private let shared: Shared<STOMPConfiguration>
    private var configuration: STOMPConfiguration { shared.value }
    /// Stops reading while a subscription is full.
    private let pressure: ReadingPressure
    /// Counts the waiting bytes, also those of earlier connections.
    var account: MemoryAccount { pressure.account }
    let manual = ManualDeliveries<STOMPSubscriptions>()

    init(
        configuration shared: Shared<STOMPConfiguration>,
        events: TransportEventSource,
        catchAll: CatchAll,
        account: MemoryAccount
    ) {
        self.shared = shared
        self.events = events
        self.catchAll = catchAll
        pressure = ReadingPressure(account: account)
    }

    // MARK: Connections

    /// Changes to a connection that the server has accepted.
    func attach(_ connection: STOMPConnection) {
        state.withLock { state in
            state.connection = connection
            state.connectionNumber += 1
        }
    }

    /// Releases a connection that is over.
    func detach(_ connection: STOMPConnection) {
        let isPresent = state.withLock { state in
            guard state.connection === connection else { return false }
            state.connection = nil
            state.lossTime = .now
            return true
        }
        guard isPresent else { return }
        pressure.detach()
        manual.removeAll()
    }

    /// Sends SUBSCRIBE again for every subscription.
    ///
    /// If the server refuses one, its messages end with that error. The ERROR also ends the connection, and the next
    /// connection subscribes to the others.
    func resume(over connection: STOMPConnection) async throws {
        let version = connection.version
        let found = state.withLock { state in
            let found = state.subscriptions.filter { $0.value.isEstablished || $0.value.isDeferred }
            for id in found.keys {
                state.subscriptions[id]?.move(to: state.connectionNumber, version)
            }
            return Self.inOrder(found)
        }
        for (id, _) in found { updatePressure(of: id) }
        try await withThrowingTaskGroup { group in
            for (id, subscription) in found {
                group.addTask {
                    try await self.resubscribe(id, subscription, over: connection)
                }
            }
            try await group.waitForAll()
        }
        // Attached last, because the server's answers could not be read while reading is stopped.
        pressure.attach(connection.reading)
        connection.endOpening()
        // If the connection has ended meanwhile, the pressure must not keep it alive.
        if state.withLock({ $0.connection !== connection }) { pressure.detach() }
    }

    private func resubscribe(
        _ id: String,
        _ subscription: STOMPSubscription,
        over connection: STOMPConnection
    ) async throws {
        let request = Request(
            topic: subscription.request.destination,
            command: .subscribe(SubscribeOptions())
        )
        do {
            try await connection.subscribe(
                subscription.request,
                as: id,
                request,
                SubscribeOptions()
            )
            let isWanted = state.withLock { state in
                // The listener may have left meanwhile.
                guard let found = state.subscriptions[id] else { return false }
                state.subscriptions[id]?.isEstablished = true
                events.report(
                    .subscribed(
                        topic: request.topic,
                        since: state.lossTime,
                        isAgain: found.isEstablished
                    )
                )
                return true
            }
            if !isWanted { connection.leave(id) }
        } catch let error as WaybillError where error.code == .rejected {
            if !subscription.isEstablished {
                events.report(.subscriptionRefused(topic: request.topic, since: nil, error: error))
            }
            subscription.listener.source.finish(throwing: error)
            remove([id])
            throw WaybillError(
                .connectionLost,
                "the server refused a subscription and ended the connection",
                peerReason: error.peerReason,
                underlying: error
            )
        }
    }

    /// Ends the messages of every listener, because no connection follows.
    func conclude(_ cause: WaybillError?) {
        let subscriptions = state.withLock { state in
            defer { state.subscriptions = [:] }
            let subscriptions = Self.inOrder(state.subscriptions)
            for (_, subscription) in subscriptions {
                reportEnd(of: subscription, because: cause)
            }
            return subscriptions
        }
        manual.removeAll()
        for (_, subscription) in subscriptions {
            subscription.listener.source.finish(throwing: cause)
        }
        pressure.forgetAll()
    }

    /// Puts back a message whose acknowledgement has failed, while its connection lasts.
    func putBack(_ delivery: Delivery<STOMPSubscriptions>, as id: Message.ID) {
        // Under the lock, so that the message is not put back after the end of its connection.
        state.withLock { state in
            guard state.connection != nil, state.connectionNumber == delivery.name.connection else {
                return
            }
            manual.putBack(delivery, as: id)
        }
    }

    /// Resumes reading for the rest of the connection, so that the server's last frames are received.
    func releasePressure() {
        pressure.release()
    }

    // MARK: Listeners

    /// Subscribes to each destination with an id of its own; all subscriptions have one listener.
    func subscribe(
        _ all: [STOMPMapping.Subscription],
        _ request: Request,
        _ options: SubscribeOptions,
        over connection: STOMPConnection
    ) async throws -> Messages<Message> {
        let (ids, listener) = makeListener(all, options)
        let messages = listener.source.messages
        state.withLock { state in
            for (id, subscription) in zip(ids, all) {
                state.subscriptions[id] = STOMPSubscription(
                    subscription,
                    listener: listener,
                    policy: options.buffering ?? configuration.buffering,
                    connection: state.connectionNumber,
                    version: connection.version
                )
            }
        }
        do {
            for ((id, subscription), part) in zip(zip(ids, all), request.partsByTopic) {
                try await subscribe(subscription, as: id, part, options, over: connection)
            }
            return messages
        } catch {
            // Also ends the subscriptions that the server has already confirmed.
            listener.source.terminate()
            throw error
        }
    }

    private func subscribe(
        _ subscription: STOMPMapping.Subscription,
        as id: String,
        _ request: Request,
        _ options: SubscribeOptions,
        over connection: STOMPConnection
    ) async throws {
        let begun = events.timestamp
        var isConfirmed = false
        do {
            try await connection.subscribe(subscription, as: id, request, options)
            isConfirmed = true
            try await establish(id, over: connection, since: begun)
        } catch {
            if !isConfirmed {
                let (topic, reason) = (request.topic, WaybillError(reporting: error))
                events.report(.subscriptionRefused(topic: topic, since: begun, error: reason))
            }
            throw error
        }
    }

    /// Adds a subscription that the next connection makes; a refusal then ends its messages.
    ///
    /// - Returns: The messages; nil if there is a connection.
    func subscribeLater(
        _ all: [STOMPMapping.Subscription],
        _ options: SubscribeOptions
    ) -> Messages<Message>? {
        let (ids, listener) = makeListener(all, options)
        let messages = listener.source.messages
        let isAdded = state.withLock { state in
            guard state.connection == nil else { return false }
            for (id, subscription) in zip(ids, all) {
                var later = STOMPSubscription(
                    subscription,
                    listener: listener,
                    policy: options.buffering ?? configuration.buffering,
                    connection: state.connectionNumber,
                    version: .v1_2
                )
                later.isDeferred = true
                state.subscriptions[id] = later
            }
            return true
        }
        return isAdded ? messages : nil
    }

    private func makeListener(
        _ all: [STOMPMapping.Subscription],
        _ options: SubscribeOptions
    ) -> ([String], MessageListener) {
        let ids = state.withLock { state in
            all.map { _ in
                state.lastSubscription += 1
                return String(state.lastSubscription)
            }
        }
        let leave = { @Sendable [weak self] (_: MessageSource) in
            for id in ids { self?.listenerLeft(id) }
        }
        let listener = MessageListener(
            options,
            buffering: configuration.buffering,
            topic: all.first?.destination,
            events: events,
            onLeave: leave,
            pressure: pressure,
            onOverflow: leave
        )
        return (ids, listener)
    }

    /// Notes a confirmed subscription.
    ///
    /// If another connection has followed already, that one subscribes, too.
    private func establish(
        _ id: String,
        over connection: STOMPConnection,
        since begun: ContinuousClock.Instant?
    ) async throws {
        let (isWanted, successor, subscription) = state.withLock { state in
            guard let topic = state.subscriptions[id]?.request.destination else {
                return (false, STOMPConnection?.none, STOMPSubscription?.none)
            }
            events.report(.subscribed(topic: topic, since: begun))
            state.subscriptions[id]?.isEstablished = true
            guard let successor = state.connection, successor !== connection else {
                return (true, STOMPConnection?.none, STOMPSubscription?.none)
            }
            state.subscriptions[id]?.move(to: state.connectionNumber, successor.version)
            return (true, successor, state.subscriptions[id])
        }
        // The subscription has ended meanwhile, perhaps before its SUBSCRIBE was sent.
        if !isWanted { connection.leave(id) }
        if let successor, let subscription {
            try await resubscribe(id, subscription, over: successor)
        }
    }

    /// Ends a subscription whose listener has left.
    private func listenerLeft(_ id: String) {
        guard remove([id]) else { return }
        state.withLock { $0.connection }?.leave(id)
    }

    /// Ends every subscription to a destination.
    func unsubscribe(_ headers: STOMPHeaders, _ request: Request) async throws -> Receipt {
        let (found, connection) = state.withLock { state in
            (
                Self.inOrder(
                    state.subscriptions.filter { _, subscription in
                        subscription.request.destination.hasSameBytes(as: request.topic ?? "")
                    }
                ),
                state.connection
            )
        }
        guard !found.isEmpty else {
            return Receipt(topic: request.topic, reason: "no subscription existed")
        }
        remove(found.map(\.key))
        defer {
            for (_, subscription) in found {
                subscription.listener.source.finish()
                pressure.forget(subscription.listener.source)
            }
        }
        // Without a connection the server has no subscription.
        guard let connection else { return Receipt(of: request.topic) }
        var failure: (any Error)?
        for (id, _) in found {
            do { try await connection.unsubscribe(id, headers, request) } catch {
                // The others are also unsubscribed. A cancelled call may not have sent its UNSUBSCRIBE.
                failure = failure ?? error
                connection.leave(id, headers)
            }
        }
        if let failure { throw failure }
        return Receipt(of: request.topic)
    }

    /// Removes subscriptions, and reports their ends.
    ///
    /// - Returns: Whether at least one was known.
    @discardableResult
    private func remove(_ ids: [String]) -> Bool {
        let gone = state.withLock { state in
            let gone = ids.compactMap { state.subscriptions.removeValue(forKey: $0) }
            for subscription in gone {
                reportEnd(of: subscription, because: subscription.listener.source.failure)
            }
            return gone
        }
        for id in ids { updatePressure(of: id) }
        // Messages of these subscriptions can no longer be acknowledged.
        let names = Set(ids)
        manual.remove { names.contains($0.token.subscriptionID) }
        return !gone.isEmpty
    }

    /// Reports the end of a subscription that the server had confirmed.
    private func reportEnd(of subscription: STOMPSubscription, because cause: WaybillError?) {
        guard subscription.isEstablished else { return }
        events.report(.subscriptionEnded(topic: subscription.request.destination, cause: cause))
    }

    private static func inOrder(
        _ subscriptions: [String: STOMPSubscription]
    ) -> [(key: String, value: STOMPSubscription)] {
        subscriptions.sorted { (UInt64($0.key) ?? 0) < (UInt64($1.key) ?? 0) }
    }

    // MARK: Messages

    /// Adds a message to the batch of its listener.
    ///
    /// - Returns: Whether the message belongs to a subscription.
    func collect(
        _ frame: STOMPFrame,
        _ token: STOMPAckToken?,
        of id: String,
        into batch: inout MessageBatch
    ) -> Bool {
        let (subscription, connection) = state.withLock { state in
            if token != nil {
                state.subscriptions[id]?.noteReceived(byteCount: frame.body.count)
            }
            return (state.subscriptions[id], state.connectionNumber)
        }
        guard let subscription else { return false }
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
                failSlow(id, subscription, message.topic)
                return true
            }
            updatePressure(of: id)
        }
        let name = STOMPDeliveryName(
            token: token,
            connection: connection,
            number: subscription.received.messages,
            byteCount: UInt64(clamping: frame.body.count),
            totalByteCount: subscription.received.bytes
        )
        batch.add(message, to: [listener], settling: name, by: self, manual: manual)
        return true
    }

    /// Ends a subscription whose messages are not acknowledged; the server delivers them again.
    private func failSlow(_ id: String, _ subscription: STOMPSubscription, _ topic: String) {
        let policy = subscription.policy
        subscription.listener.source.finish(
            throwing: WaybillError(
                .slowConsumer,
                "more than \(policy.messageLimit) messages or \(policy.byteLimit) bytes wait to be acknowledged",
                topic: topic
            )
        )
        listenerLeft(id)
    }

    /// Acknowledges a message that a consumer has taken.
    ///
    /// A message that no consumer has taken is not acknowledged, so that the server delivers it again.
    func settle(_ name: STOMPDeliveryName, _ settlement: Settlement) {
        noteSettled(name)
        guard settlement.isTaken else { return }
        let connection = state.withLock { state in
            state.connectionNumber == name.connection ? state.connection : nil
        }
        connection?.acknowledge(name.token)
    }

    /// The length of the id, which the server chooses and ACK repeats.
    static func acknowledgementByteCount(of name: STOMPDeliveryName) -> Int {
        name.token.identifier.utf8.count
    }

    /// Notes that a message was acknowledged or dropped; in the mode `client` it covers all messages before it.
    func noteSettled(_ name: STOMPDeliveryName) {
        let id = name.token.subscriptionID
        let subscription = state.withLock { state in
            state.subscriptions[id]?.noteSettled(name)
            return state.subscriptions[id]
        }
        guard let subscription else { return }
        if subscription.holdsBack { updatePressure(of: id) }
        guard subscription.isCumulative, subscription.listener.isManual else { return }
        manual.remove { $0.token.subscriptionID == id && $0.number <= name.number }
    }

    /// Stops reading while too many messages of a subscription are unacknowledged.
    private func updatePressure(of id: String) {
        pressure.update(id) { state.withLock { $0.subscriptions[id]?.isTooSlow ?? false } }
    }
}
