import MQTTWire
package import Waybill
import WaybillSession

/// What the server knows of a filter that has listeners.
package enum MQTTFilterState: Hashable, Sendable {
    /// A SUBSCRIBE is under way, and the server has never granted the filter.
    case subscribing
    /// The filter is in the server's session.
    case subscribed(QoS)
    /// The next connection subscribes. The server has granted the filter in a session that is lost, less than what is
    /// wanted now, or never.
    case wanted(former: QoS?)

    /// What the server has granted last.
    var quality: QoS? {
        switch self {
        case .subscribing: nil
        case .subscribed(let quality): quality
        case .wanted(let former): former
        }
    }
}

/// A filter as a SUBSCRIBE asks for it.
package struct MQTTFilterRequest: Sendable {
    /// The filter with its options.
    let subscription: MQTTSubscription
    /// The maximum number of filters in one packet.
    ///
    /// MQTT sets no limit. Each broker that Waybill is tested with accepts so many; another one may not.
    static let maximumBatchSize = 100

    /// The subscription identifier (MQTT 5, 3.8.2.1.2); nil for none.
    let identifier: UInt32?
    /// The user properties of the SUBSCRIBE.
    let userProperties: [MQTTUserProperty]
    /// The call that the filter is sent for.
    let call: UInt64
    /// Counts requests.
    package let number: UInt64
    /// The listeners that get the retained messages; none for all listeners of the filter.
    fileprivate(set) var joining: [MessageListener]
    /// Resolves for the callers that wait; nil when the filter is restored on a new connection.
    let answer: Promise<QoS>?

    package var filter: String { subscription.filter }

    /// The filter as it is sent.
    var sent: MQTTSubscription {
        var sent = subscription
        if !joining.isEmpty { sent.retainHandling = .send }
        return sent
    }
}

/// A filter and its listeners.
struct MQTTSubscriptionEntry: Sendable {
    /// What the server has granted, or is asked for first.
    var subscription: MQTTSubscription
    var state: MQTTFilterState
    /// Counts filters, in the order of subscribing.
    let order: UInt64
    /// The last call whose SUBSCRIBE the server has granted, or the first one.
    ///
    /// A reconnection sends the filters of one call in one packet.
    private(set) var call: UInt64
    /// The subscription identifier; nil for none.
    let identifier: UInt32?
    /// Whether the app has chosen the identifier.
    let isIdentifierChosen: Bool
    /// The user properties of a SUBSCRIBE for the filter.
    let userProperties: [MQTTUserProperty]
    /// Tells which topics the filter matches; nil for an invalid filter.
    let matcher: MQTTTopicFilter?
    /// Whether the server may have the filter: it was sent, or was among those that were left.
    private(set) var mayBeKnown: Bool
    /// At least one, in the order of joining; changed by the router alone.
    var listeners: [MessageListener]
    /// The requests without SUBACK, in the order of sending.
    private(set) var pending: [MQTTFilterRequest] = []
    /// The listeners that get the retained messages which come now; nil for all.
    private(set) var retainedTo: [MessageListener]?

    init(
        subscription: MQTTSubscription,
        state: MQTTFilterState,
        order: UInt64,
        call: UInt64,
        identifier: UInt32?,
        _ properties: MQTTSubscribeProperties,
        listener: MessageListener,
        wasLeft: Bool
    ) {
        self.subscription = subscription
        self.state = state
        self.order = order
        self.call = call
        self.identifier = identifier
        if case .number = properties.identifier {
            isIdentifierChosen = true
        } else {
            isIdentifierChosen = false
        }
        userProperties = properties.userProperties
        matcher = try? MQTTTopicFilter(subscription.filter)
        mayBeKnown = wasLeft
        listeners = [listener]
    }

    var sources: [MessageSource] { listeners.map(\.source) }

    /// The callers that wait for a SUBACK.
    var waiting: [Promise<QoS>] { pending.compactMap(\.answer) }

    /// The last request that callers wait for.
    private var awaited: MQTTFilterRequest? { pending.last { $0.answer != nil } }

    /// What was asked for last.
    var asked: MQTTSubscription { awaited?.subscription ?? subscription }

    /// What a further listener waits for that needs no request of its own; nil when the next connection subscribes.
    var answer: Promise<QoS>? {
        switch (state, awaited) {
        case (.wanted, _): return nil
        case (.subscribing, _), (.subscribed, .some): return awaited?.answer
        case (.subscribed(let quality), nil):
            let known = Promise<QoS>()
            known.resolve(.success(quality))
            return known
        }
    }

    /// Whether a further listener with these options gets the retained messages by another SUBSCRIBE.
    ///
    /// A shared subscription gets no retained messages (MQTT 5, 4.8.2). With Retain As Published, retained messages
    /// cannot be told apart from new ones.
    func renewsRetained(for subscription: MQTTSubscription) -> Bool {
        subscription.retainHandling != .doNotSend && !asked.retainAsPublished
            && matcher?.shareName == nil
    }

    /// Adds a listener to those of a request under way that brings retained messages.
    /// - Returns: False when there is no such request.
    mutating func joinRequest(_ listener: MessageListener) -> Bool {
        guard let index = pending.lastIndex(where: { $0.sent.retainHandling == .send }) else {
            return false
        }
        if pending[index].joining.isEmpty {
            retainedTo?.append(listener)
        } else {
            pending[index].joining.append(listener)
        }
        return true
    }

    /// Keeps the retained messages that are on their way for the present listeners.
    mutating func divideRetained() { retainedTo = retainedTo ?? listeners }

    /// Whether the answer to a request is awaited.
    func awaits(_ request: MQTTFilterRequest) -> Bool {
        pending.contains { $0.number == request.number }
    }

    mutating func noteSent(_ request: MQTTFilterRequest) {
        pending.append(request)
        mayBeKnown = true
    }

    /// Notes that no SUBACK follows, or one that refuses.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - isLost: Whether the connection was lost, so that the server may have it or not.
    /// - Returns: False if the request is none of this entry.
    mutating func noteFailed(_ request: MQTTFilterRequest, isLost: Bool) -> Bool {
        guard let index = pending.firstIndex(where: { $0.number == request.number }) else {
            return false
        }
        pending.remove(at: index)
        if isLost, request.answer == nil { wantAgain() }
        return true
    }

    /// Notes that the connection is lost: a filter that was being restored is wanted.
    mutating func noteLoss() {
        guard pending.contains(where: { $0.answer == nil }) else { return }
        pending.removeAll { $0.answer == nil }
        wantAgain()
    }

    /// The server may not have the filter any more: an UNSUBSCRIBE may have reached it.
    mutating func wantAgain() {
        if case .subscribed(let quality) = state { state = .wanted(former: quality) }
    }

    /// Notes a SUBACK that grants: the retained messages which follow are for the listeners that have joined.
    ///
    /// With a backlog, those of an earlier SUBSCRIBE may follow, too.
    ///
    /// - Returns: False if the request is none of this entry.
    mutating func noteGranted(
        _ request: MQTTFilterRequest,
        _ quality: QoS,
        hasBacklog: Bool
    ) -> Bool {
        guard let index = pending.firstIndex(where: { $0.number == request.number }) else {
            return false
        }
        state = .subscribed(quality)
        let granted = pending.remove(at: index)
        subscription = granted.subscription
        call = granted.call
        guard !granted.joining.isEmpty else { return true }
        retainedTo = (hasBacklog ? retainedTo ?? [] : []) + granted.joining
        return true
    }

    /// Notes that the server has lost its session: a new one sends the retained messages to all listeners.
    mutating func noteSessionLoss() {
        wantAgain()
        // Requests of the lost connection fail soon.
        pending.removeAll { $0.answer == nil }
        for index in pending.indices { pending[index].joining = [] }
        retainedTo = nil
    }

    /// Removes one of several listeners.
    mutating func remove(_ source: MessageSource) {
        listeners.removeAll { $0.source === source }
        retainedTo?.removeAll { $0.source === source }
        for index in pending.indices { pending[index].joining.removeAll { $0.source === source } }
    }
}
