package import STOMPWire
package import Waybill
package import WaybillSession
import WireCore

/// What the shell does after a change of the subscriptions.
package enum STOMPSubscriptionAction: Sendable {
    /// Report what has become of a subscription to a destination.
    case report(TransportEvent.Kind, String, WaybillError? = nil)
    /// Send SUBSCRIBE over the present connection.
    case subscribe(STOMPSubscription)
    /// Send UNSUBSCRIBE for this id.
    case unsubscribe(String)
    /// End a stream.
    case finish(MessageSource, WaybillError?)
}

/// Decides what becomes of each subscription, by its id, which this side has made or an entry has chosen.
///
/// STOMP has no sessions: each connection makes every subscription again under the same id.
///
/// | event | moves a subscription |
/// | --- | --- |
/// | a listener subscribes | absent → subscribing, or wanted without a connection |
/// | the server confirms | any but absent → subscribed |
/// | the server refuses, the listener leaves, an entry unsubscribes | any → absent |
/// | no connection follows | any → absent |
package struct STOMPSubscriptionTable: Sendable {
    private var subscriptions: [WireName: STOMPSubscription] = [:]
    private var lastID: UInt64 = 0
    private var lastOrder: UInt64 = 0
    /// The ids that were made or chosen for subscriptions that are not added yet.
    private var reserved: Set<WireName> = []
    /// The ids of SUBSCRIBEs and UNSUBSCRIBEs under way, with their numbers: what these do at their end must not reach
    /// another subscription.
    private var busy: [WireName: Int] = [:]
    /// The numbers that entries have chosen as ids.
    private var chosenNumbers: Set<UInt64> = []
    /// Counts connections.
    package private(set) var connection: UInt64 = 0
    /// The number of the last connection that has restored the subscriptions.
    private var lastRestoring: UInt64 = 0
    /// The version of the present connection, or of the last one.
    private var version = STOMPVersion.v1_2

    package init() {}

    /// A subscription; nil when it has ended.
    package subscript(id: String) -> STOMPSubscription? { subscriptions[id] }

    /// Notes a connection that the server has accepted.
    package mutating func connected(_ version: STOMPVersion) {
        connection += 1
        self.version = version
    }

    // MARK: Listeners

    /// Makes ids for subscriptions, for ``subscribe(_:_:to:_:)`` or ``release(_:)``.
    package mutating func makeIDs(_ count: Int) -> [String] {
        (0..<count).map { _ in
            // Messages may still come for a number that was chosen before.
            repeat { lastID += 1 } while chosenNumbers.contains(lastID)
            reserved.insert(WireName(String(lastID)))
            return String(lastID)
        }
    }

    /// Reserves an id that an entry has chosen.
    /// - Returns: Whether it was free.
    package mutating func reserve(_ id: String) -> Bool {
        guard !isTaken(id) else { return false }
        if let number = STOMPReceipts.plainNumber(id) {
            // Messages may still come for one that was made before.
            guard number > lastID || chosenNumbers.contains(number) else { return false }
            chosenNumbers.insert(number)
        }
        reserved.insert(WireName(id))
        return true
    }

    /// Gives up ids for which no subscription was added.
    package mutating func release(_ ids: [String]) {
        reserved.subtract(ids.map(WireName.init))
    }

    private func isTaken(_ id: String) -> Bool {
        subscriptions[id] != nil || reserved.contains(id) || busy[WireName(id)] != nil
    }

    /// Keeps ids until ``endRequests(_:)``, also if their subscriptions end.
    package mutating func beginRequests(_ ids: [String]) {
        for id in ids { busy[WireName(id), default: 0] += 1 }
    }

    /// Ends requests about ids.
    package mutating func endRequests(_ ids: [String]) {
        for id in ids {
            let count = (busy[WireName(id)] ?? 0) - 1
            busy[WireName(id)] = count > 0 ? count : nil
        }
    }

    /// Adds subscriptions that one listener has.
    package mutating func subscribe(
        _ listener: MessageListener,
        _ policy: BufferPolicy,
        to all: [(String, STOMPSubscribe)],
        _ state: STOMPSubscription.State
    ) {
        for (id, request) in all {
            reserved.remove(WireName(id))
            lastOrder += 1
            subscriptions[id] = STOMPSubscription(
                id: id,
                order: lastOrder,
                request: request,
                listener: listener,
                policy: policy,
                state: state,
                connection: connection,
                version: version
            )
        }
    }

    /// Ends a subscription whose listener has left, unless another one has the id by now.
    package mutating func leave(
        _ id: String,
        of source: MessageSource,
        because cause: WaybillError?
    ) -> [STOMPSubscriptionAction] {
        guard let subscription = subscriptions[id], subscription.listener.source === source else {
            return []
        }
        subscriptions[id] = nil
        return reportEnd(of: subscription, because: cause) + [.unsubscribe(id)]
    }

    /// Ends every subscription to a destination, as an entry has asked for.
    /// - Returns: The subscriptions, in the order of subscribing; and what to do.
    package mutating func unsubscribe(
        _ destination: String
    ) -> (ended: [STOMPSubscription], actions: [STOMPSubscriptionAction]) {
        let ended = inOrder { $0.request.destination.hasSameBytes(as: destination) }
        for subscription in ended { subscriptions[subscription.id] = nil }
        return (ended, ended.flatMap { reportEnd(of: $0, because: nil) })
    }

    private func reportEnd(
        of subscription: STOMPSubscription,
        because cause: WaybillError?
    ) -> [STOMPSubscriptionAction] {
        subscription.state == .subscribed
            ? [.report(.subscriptionEnded, subscription.request.destination, cause)] : []
    }

    private func inOrder(_ isWanted: (STOMPSubscription) -> Bool) -> [STOMPSubscription] {
        subscriptions.values.filter(isWanted).sorted { $0.order < $1.order }
    }

    // MARK: Answers

    /// Notes that the server has confirmed a subscription for the callers that wait.
    ///
    /// A successor that has not restored the subscriptions yet will restore this one with them.
    ///
    /// - Parameters:
    ///   - id: The subscription.
    ///   - hasSuccessor: Whether another connection has followed meanwhile.
    /// - Returns: What to do.
    package mutating func confirmed(
        _ id: String,
        hasSuccessor: Bool
    ) -> [STOMPSubscriptionAction] {
        // It has ended meanwhile, perhaps before the server knew of it.
        guard var subscription = subscriptions[id] else { return [.unsubscribe(id)] }
        subscription.state = .subscribed
        let isMissing = hasSuccessor && lastRestoring == connection
        if isMissing { subscription.move(to: connection, version) }
        subscriptions[id] = subscription
        let report = STOMPSubscriptionAction.report(.subscribed, subscription.request.destination)
        return isMissing ? [report, .subscribe(subscription)] : [report]
    }

    /// Notes that the server has confirmed a subscription on a connection that restores it.
    package mutating func restored(_ id: String) -> [STOMPSubscriptionAction] {
        guard let subscription = subscriptions[id] else { return [.unsubscribe(id)] }
        subscriptions[id]?.state = .subscribed
        let isAgain = subscription.state == .subscribed
        let topic = subscription.request.destination
        return [.report(isAgain ? .resubscribed : .subscribed, topic)]
    }

    /// Notes that the server has refused to restore a subscription.
    package mutating func refused(
        _ id: String,
        _ error: WaybillError
    ) -> [STOMPSubscriptionAction] {
        guard let subscription = subscriptions.removeValue(forKey: WireName(id)) else { return [] }
        let end = reportEnd(of: subscription, because: error)
        let refusal = STOMPSubscriptionAction.report(
            .subscriptionRefused,
            subscription.request.destination,
            error
        )
        return (end.isEmpty ? [refusal] : end) + [.finish(subscription.listener.source, error)]
    }

    // MARK: Connections

    /// Restores the subscriptions over a connection.
    /// - Returns: What to subscribe to, in the order of subscribing.
    package mutating func resume() -> [STOMPSubscription] {
        lastRestoring = connection
        let found = inOrder { $0.state != .subscribing }
        for subscription in found { subscriptions[subscription.id]?.move(to: connection, version) }
        return found
    }

    /// Ends every stream, as no connection follows.
    package mutating func conclude(_ cause: WaybillError?) -> [STOMPSubscriptionAction] {
        let all = inOrder { _ in true }
        subscriptions = [:]
        return all.flatMap { reportEnd(of: $0, because: cause) }
            + all.map { .finish($0.listener.source, cause) }
    }

    // MARK: Messages

    /// Counts a message that is to be acknowledged.
    package mutating func received(_ id: String, byteCount: Int) {
        subscriptions[id]?.noteReceived(byteCount: byteCount)
    }

    /// Notes a message that has no name for an acknowledgement.
    /// - Returns: Whether the app is to be told.
    mutating func receivedUnacknowledged(_ id: String) -> Bool {
        subscriptions[id]?.noteUnacknowledged() ?? false
    }

    /// Counts a message that was skipped, and whose acknowledgement covers all before it.
    mutating func skipped(_ token: STOMPAckToken) {
        subscriptions[token.subscriptionID]?.noteSkipped(token)
    }

    /// Takes the skipped message of a subscription that can be acknowledged now.
    mutating func takeSkipped(_ id: String) -> STOMPAckToken? { subscriptions[id]?.takeSkipped() }

    /// Counts a message that no longer waits, and all before it where an acknowledgement covers them.
    /// - Returns: The subscription; nil when it has ended.
    package mutating func acknowledged(_ name: STOMPDeliveryName) -> STOMPSubscription? {
        let id = name.token.subscriptionID
        guard subscriptions[id]?.order == name.generation else { return nil }
        subscriptions[id]?.noteAcknowledged(name)
        return subscriptions[id]
    }
}
