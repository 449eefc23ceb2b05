import Waybill
import WaybillSession
import WireCore

/// The subscriptions of a mock, in the order of the calls, and the messages that wait to be acknowledged.
struct MockSubscriptions<Feed: Sendable>: Sendable {
    struct Subscription: Sendable {
        let number: UInt64
        /// The request as it came, with its interceptors.
        let request: Request
        let feed: Feed
    }

    private(set) var all: [Subscription] = []
    var deliveries = MockDeliveries()

    mutating func add(_ subscription: Subscription) {
        all.append(subscription)
    }

    /// - Returns: The subscription that had the number.
    mutating func remove(_ number: UInt64) -> Subscription? {
        all.firstIndex { $0.number == number }.map { all.remove(at: $0) }
    }

    /// Removes the subscriptions that an unsubscribe request ends.
    ///
    /// - Parameters:
    ///   - request: The request, with one topic or several.
    ///   - rules: The rules of the mock.
    /// - Returns: The subscriptions that had one of the topics.
    mutating func removeAll(of request: Request, by rules: any MockRules) -> [Subscription] {
        let ended = Set(request.topics.map { WireName($0.name) })
        let shareName = { (one: Request) in rules.shareName(of: one.command).map { WireName($0) } }
        let isMeant = { (one: Subscription) in
            shareName(one.request) == shareName(request)
                && one.request.topics.contains { ended.contains(WireName($0.name)) }
        }
        defer { all.removeAll(where: isMeant) }
        return all.filter(isMeant)
    }

    /// - Returns: The subscriptions that there were.
    mutating func removeAll() -> [Subscription] {
        deliveries.removeAll()
        defer { all = [] }
        return all
    }

    /// Finds the subscriptions that get a message, and holds the copies that are to be acknowledged.
    mutating func take(_ message: Message, by rules: any MockRules) -> [(Feed, Message)] {
        all.filter { one in one.request.topics.contains { rules.matches($0.name, message.topic) } }
            .map { one in
                var copy = message
                if rules.waitsForAcknowledgement(one.request.command) {
                    let isCumulative = rules.isCumulative(one.request.command)
                    deliveries.hold(&copy, of: one.number, isCumulative: isCumulative)
                }
                return (one.feed, copy)
            }
    }

    /// Refuses the acknowledgement of a message that does not wait, and a request that does not fit the open transactions.
    func check(_ request: Request, by rules: any MockRules) throws(WaybillError) {
        guard rules.connectivity != .assumed else { return }
        if let id = request.command.message, !deliveries.isWaiting(id) {
            throw WaybillError.messageNotWaiting.about(request)
        }
        try rules.check(request, against: deliveries.transactions)
    }
}
