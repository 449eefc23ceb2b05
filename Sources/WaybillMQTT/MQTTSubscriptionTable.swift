package import MQTTWire
package import Waybill
package import WaybillSession

/// What the shell does after a change of the subscriptions.
package enum MQTTSubscriptionAction: Sendable {
    /// Report what has become of a filter.
    case report(TransportEvent.Kind, String, QoS? = nil, WaybillError? = nil)
    /// Tell streams what was granted.
    case tell([MessageSource], QoS)
    /// Answer the callers that wait.
    case answer(Promise<QoS>, Result<QoS, WaybillError>)
    /// Store that a filter was left, and send UNSUBSCRIBE if there is a connection.
    case unsubscribe(MQTTLeftFilters.Filter)
    /// End streams.
    case finish([MessageSource], WaybillError?)
}

/// Decides what the server is asked for, and finds the listeners of a message.
///
/// Outlives every connection.
/// A filter with listeners has an ``MQTTFilterState``. One without is absent, or left: the server may still have it.
///
/// | event | moves a filter |
/// | --- | --- |
/// | a listener subscribes | absent or left → subscribing |
/// | a listener subscribes with the next connection | absent, left or subscribing → wanted; any → wanted if it wants a better quality |
/// | the server grants | any but absent and left → subscribed; a restored filter without listeners → left |
/// | a SUBSCRIBE fails | subscribing → absent, or left if the server may have it |
/// | the server refuses to restore | any but left → absent |
/// | the last listener leaves | any → left; wanted, and never sent → absent |
/// | an entry unsubscribes | any → absent, or left without a connection |
/// | the server confirms UNSUBSCRIBE | left → absent |
/// | the connection is lost | subscribed, while it is restored → wanted |
/// | a connection comes without the session | subscribed → wanted; left → absent |
/// | no connection follows | any → absent |
package struct MQTTSubscriptionTable: Sendable {
    /// Whose subscription identifiers the server's session has.
    private enum Session: Sendable {
        case unknown
        /// Those of this table.
        case own
        /// Perhaps those of an earlier process.
        case foreign
    }

    private var router = MQTTRouter()
    /// The filters that were left.
    package var left: MQTTLeftFilters
    private var session = Session.unknown
    private var lastNumber: UInt64 = 0
    private var lastCall: UInt64 = 0

    /// - Parameter left: The filters that an earlier process has left.
    package init(left: [String] = []) { self.left = MQTTLeftFilters(left) }

    /// The state of a filter; nil when it has no listener.
    package func state(of filter: String) -> MQTTFilterState? { router[filter]?.state }

    /// All listeners, in the order of subscribing.
    package var sources: [MessageSource] { router.all.flatMap(\.sources) }

    /// The listeners of a message.
    package mutating func listeners(for run: MQTTArrivals.Run) -> [MessageListener] {
        router.listeners(for: run)
    }

    /// The identifiers of the app's choice among those that a message names.
    func chosenIdentifiers(of run: MQTTArrivals.Run) -> [UInt32] {
        router.chosenIdentifiers(of: run)
    }

    /// Whether the identifier that a subscription chooses belongs to another one.
    package func isTaken(
        _ properties: MQTTSubscribeProperties,
        for all: [MQTTSubscription]
    ) -> Bool {
        guard case .number(let number) = properties.identifier else { return false }
        return router.isTaken(number, for: all.map(\.filter))
    }

    // MARK: Listeners

    /// Whether a filter waits for the next connection.
    package func waits(for all: [MQTTSubscription]) -> Bool {
        all.contains { subscription in
            if case .wanted? = state(of: subscription.filter) { true } else { false }
        }
    }

    /// Subscribes a listener over a connection.
    ///
    /// A filter is sent if it has no listener yet, or none that wants as good a quality of service, or for the retained
    /// messages, which the other listeners have had.
    ///
    /// - Returns: What to wait for, and what to send; nil when a filter waits for the next connection.
    package mutating func subscribe(
        _ listener: MessageListener,
        to all: [MQTTSubscription],
        _ properties: MQTTSubscribeProperties = MQTTSubscribeProperties()
    ) -> (answers: [Promise<QoS>], requests: [MQTTFilterRequest])? {
        guard !waits(for: all) else { return nil }
        if all.count > 1 { router.sharesListeners = true }
        lastCall += 1
        var groups = MQTTIdentifierGroups()
        var (answers, requests): ([Promise<QoS>], [MQTTFilterRequest]) = ([], [])
        for subscription in all {
            let request = subscribe(listener, to: subscription, properties, &groups)
            if let request { requests.append(request) }
            let answer = request?.answer ?? router[subscription.filter]?.answer
            if let answer { answers.append(answer) }
        }
        return (answers, requests)
    }

    /// - Returns: What to send; nil when the listener needs no request of its own.
    private mutating func subscribe(
        _ listener: MessageListener,
        to subscription: MQTTSubscription,
        _ properties: MQTTSubscribeProperties,
        _ groups: inout MQTTIdentifierGroups
    ) -> MQTTFilterRequest? {
        let filter = subscription.filter
        guard let entry = router[filter] else {
            left.remove(filter)
            router.add(subscription, .subscribing, listener, properties, &groups, call: lastCall)
            return ask(for: subscription, promising: Promise())
        }
        let isBetter = entry.asked.qos < subscription.qos
        let wantsRetained = entry.renewsRetained(for: subscription)
        let hasJoined = wantsRetained && !isBetter && router[filter]?.joinRequest(listener) == true
        let isSent = isBetter || wantsRetained && !hasJoined
        if isSent ? wantsRetained : subscription.retainHandling == .doNotSend {
            router.divideRetained(of: filter)
        }
        router.add(listener, to: filter)
        guard isSent else { return nil }
        let asked = isBetter ? subscription : entry.asked
        return ask(for: asked, joining: wantsRetained ? [listener] : [], promising: Promise())
    }

    /// Subscribes a listener with the next connection, unless the server has the filter, as good.
    package mutating func subscribeLater(
        _ listener: MessageListener,
        to all: [MQTTSubscription],
        _ properties: MQTTSubscribeProperties = MQTTSubscribeProperties()
    ) -> [MQTTSubscriptionAction] {
        if all.count > 1 { router.sharesListeners = true }
        lastCall += 1
        var groups = MQTTIdentifierGroups()
        return all.compactMap { subscription in
            let filter = subscription.filter
            guard let entry = router[filter] else {
                let wasLeft = left.remove(filter)
                let state = MQTTFilterState.wanted(former: nil)
                router.add(
                    subscription,
                    state,
                    listener,
                    properties,
                    &groups,
                    call: lastCall,
                    wasLeft: wasLeft
                )
                return nil
            }
            router.add(listener, to: filter)
            let isBetter = entry.subscription.qos < subscription.qos
            if isBetter { router[filter]?.subscription = subscription }
            switch entry.state {
            case .subscribed(let quality) where !isBetter: return .tell([listener.source], quality)
            // A SUBSCRIBE under way fails for the callers that wait for it, not for this listener.
            case .subscribing, .subscribed, .wanted:
                router[filter]?.state = .wanted(former: entry.state.quality)
                return nil
            }
        }
    }

    /// Removes a listener that has left, and its filter with the last one.
    package mutating func leave(
        _ source: MessageSource,
        _ filter: String,
        because cause: WaybillError?
    ) -> [MQTTSubscriptionAction] {
        guard let entry = router.remove(source, from: filter) else { return [] }
        // The server never had it.
        if entry.state == .wanted(former: nil), !entry.mayBeKnown { return [] }
        return reportEnd(of: entry, because: cause) + [.unsubscribe(left.add(filter))]
    }

    /// Ends every stream of a filter.
    package mutating func end(
        _ filter: String,
        because cause: WaybillError?
    ) -> [MQTTSubscriptionAction] {
        guard let entry = router.remove(filter) else { return [] }
        let error = cause ?? WaybillError(.rejected, "the filter was unsubscribed meanwhile")
        var actions = entry.waiting.map { MQTTSubscriptionAction.answer($0, .failure(error)) }
        actions += reportEnd(of: entry, because: cause)
        // The server may grant a SUBSCRIBE that is under way, for which there is no listener any more.
        if !entry.pending.isEmpty { actions.append(.unsubscribe(left.add(filter))) }
        return actions + [.finish(entry.sources, cause)]
    }

    /// Notes that an UNSUBSCRIBE was lost with the connection: the server may have the filter or not.
    package mutating func unsubscribeFailed(_ filter: String) { router[filter]?.wantAgain() }

    private func reportEnd(
        of entry: MQTTSubscriptionEntry,
        because cause: WaybillError?
    ) -> [MQTTSubscriptionAction] {
        let filter = entry.subscription.filter
        return entry.state.quality == nil
            ? [] : [.report(.subscriptionEnded, filter, nil, cause)]
    }

    // MARK: Requests

    private mutating func ask(
        for subscription: MQTTSubscription,
        joining: [MessageListener] = [],
        promising answer: Promise<QoS>?
    ) -> MQTTFilterRequest? {
        guard let entry = router[subscription.filter] else { return nil }
        lastNumber += 1
        let request = MQTTFilterRequest(
            subscription: subscription,
            identifier: entry.identifier,
            userProperties: entry.userProperties,
            call: answer == nil ? entry.call : lastCall,
            number: lastNumber,
            joining: joining,
            answer: answer
        )
        router[subscription.filter]?.noteSent(request)
        return request
    }

    /// Asks for a filter once more, with the retained messages for all listeners that wait for them.
    /// - Returns: What to send; nil when the filter has no listener.
    package mutating func restore(_ filter: String) -> MQTTFilterRequest? {
        guard let entry = router[filter] else { return nil }
        let joining = entry.pending.flatMap(\.joining)
        return ask(for: entry.subscription, joining: joining, promising: nil)
    }

    /// Notes the answer to a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - answer: What the SUBACK says of it, or the reason why none comes.
    /// - Returns: What to do.
    package mutating func answered(
        _ request: MQTTFilterRequest,
        _ answer: Result<MQTTGrant, WaybillError>
    ) -> [MQTTSubscriptionAction] {
        switch answer {
        case .success(let grant):
            switch grant.result {
            case .success(let quality):
                return granted(request, quality, hasBacklog: grant.hasBacklog)
            case .failure(var error):
                error.topic = request.filter
                return failed(request, error, isRefused: true)
            }
        case .failure(let error): return failed(request, error, isRefused: false)
        }
    }

    /// Notes a SUBACK that grants a request.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - quality: What was granted.
    ///   - hasBacklog: Whether retained messages of an earlier SUBSCRIBE may follow, too.
    /// - Returns: What to do.
    package mutating func granted(
        _ request: MQTTFilterRequest,
        _ quality: QoS,
        hasBacklog: Bool
    ) -> [MQTTSubscriptionAction] {
        let filter = request.filter
        var actions: [MQTTSubscriptionAction] = []
        if let entry = router[filter] {
            // Not when this answers a SUBSCRIBE for listeners that have left: an UNSUBSCRIBE has followed it.
            let isPending =
                router[filter]?.noteGranted(request, quality, hasBacklog: hasBacklog) == true
            guard isPending else {
                return request.answer.map { [.answer($0, .success(quality))] } ?? []
            }
            let isAgain = request.answer == nil && entry.state.quality != nil
            actions.append(.report(isAgain ? .resubscribed : .subscribed, filter, quality))
            if case .wanted = entry.state { actions.append(.tell(entry.sources, quality)) }
        } else if request.answer == nil {
            // All listeners have left meanwhile.
            actions.append(.unsubscribe(left.add(filter)))
        }
        if let answer = request.answer { actions.append(.answer(answer, .success(quality))) }
        return actions
    }

    /// Notes that a request has failed: the filter is what it was before.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - error: Why.
    ///   - isRefused: Whether a SUBACK says so; otherwise the connection is lost, or the time is over.
    /// - Returns: What to do.
    package mutating func failed(
        _ request: MQTTFilterRequest,
        _ error: WaybillError,
        isRefused: Bool
    ) -> [MQTTSubscriptionAction] {
        let filter = request.filter
        let isPending = router[filter]?.noteFailed(request, isLost: error.losesRequest) == true
        let entry = router[filter]
        let report = MQTTSubscriptionAction.report(.subscriptionRefused, filter, nil, error)
        guard let answer = request.answer else {
            return isRefused && isPending ? refused(filter, error) : []
        }
        var actions = [report]
        if isPending, entry?.state == .subscribing, entry?.waiting.isEmpty == true {
            // The callers that wait end their streams.
            _ = router.remove(filter)
            let mayHaveArrived = !isRefused && error.leavesRequestOpen
            if mayHaveArrived { actions.append(.unsubscribe(left.add(filter))) }
        }
        return actions + [.answer(answer, .failure(error))]
    }

    /// Notes that the server answers a restored filter by ending the connection.
    package mutating func refused(
        _ filter: String,
        _ error: WaybillError
    ) -> [MQTTSubscriptionAction] {
        guard let entry = router[filter] else { return [] }
        let report = MQTTSubscriptionAction.report(.subscriptionRefused, filter, nil, error)
        return (entry.state.quality == nil ? [report] : []) + end(filter, because: error)
    }

    /// Those of some requests whose answer is still awaited: listeners may have left before a request is sent.
    package func awaited(among requests: [MQTTFilterRequest]) -> [MQTTFilterRequest] {
        requests.filter { router[$0.filter]?.awaits($0) == true }
    }

    // MARK: Connections

    /// Notes that the connection is lost.
    package mutating func disconnected() { router.noteLoss() }

    /// Notes a connection that the server has accepted, before its messages come.
    package mutating func connected(hasSession: Bool, isOfOtherClient: Bool = false) {
        if isOfOtherClient { session = .unknown }
        switch (session, hasSession) {
        case (_, false): session = .own
        case (.unknown, true): session = .foreign
        case (.own, true), (.foreign, true): break
        }
        router.hasForeignIdentifiers = session == .foreign
    }

    /// Restores the filters over a connection.
    ///
    /// - Parameters:
    ///   - hasSession: Whether the server has kept the session.
    ///   - isInDoubt: Whether that may be another session, in which nothing was subscribed to.
    /// - Returns: What to send.
    package mutating func resume(hasSession: Bool, isInDoubt: Bool) -> [MQTTFilterRequest] {
        if !hasSession { left.removeAll() }
        if !hasSession || isInDoubt { router.noteSessionLoss() }
        return router.all.compactMap { entry in
            guard case .wanted = entry.state else { return nil }
            return restore(entry.subscription.filter)
        }
    }

    /// Ends every stream, as no connection follows.
    ///
    /// A server that keeps the session also keeps the filters that were left.
    package mutating func conclude(
        _ cause: WaybillError?,
        keepsSession: Bool
    ) -> [MQTTSubscriptionAction] {
        let entries = router.all
        router = MQTTRouter()
        session = .unknown
        if !keepsSession { left.removeAll() }
        return entries.flatMap { reportEnd(of: $0, because: cause) }
            + [.finish(entries.flatMap(\.sources), cause)]
    }
}

extension WaybillError {
    /// Whether the server may have done, or may yet do, what failed with this error.
    var leavesRequestOpen: Bool {
        losesRequest || code == .timedOut
    }

    /// Whether the connection was over before the server answered.
    var losesRequest: Bool { [.connectionLost, .notConnected, .shutDown].contains(code) }
}
