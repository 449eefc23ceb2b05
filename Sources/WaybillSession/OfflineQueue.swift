package import Waybill
package import WaybillLink
import WireCore

/// Sends that wait for a connection, in the order of the calls.
package final class OfflineQueue<Connection: Sendable>: Sendable {
    /// One send.
    package struct Item: Sendable {
        /// The topic or destination.
        package var topic: String?
        /// The length of the body.
        package var byteCount: Int
        /// The longest wait; nil for no limit.
        package var timeout: Duration?
        /// Whether the send waits for a connection of whatever origin, as long as one may follow.
        package var isLasting: Bool
        /// Hands the send to a connection.
        ///
        /// Throws `notConnected` if the connection is over and nothing was sent. Any other error goes to the caller
        /// of the send instead.
        package var send: @Sendable (Connection) throws(WaybillError) -> Void
        /// Tells the caller that the message was never sent.
        package var fail: @Sendable (WaybillError) -> Void

        package init(
            topic: String? = nil,
            byteCount: Int,
            timeout: Duration?,
            isLasting: Bool = false,
            send: @escaping @Sendable (Connection) throws(WaybillError) -> Void,
            fail: @escaping @Sendable (WaybillError) -> Void
        ) {
            self.topic = topic
            self.byteCount = byteCount
            self.timeout = timeout
            self.isLasting = isLasting
            self.send = send
            self.fail = fail
        }
    }

    private struct Waiting: Sendable {
        let item: Item
        /// The end of its wait; nil for no limit.
        let deadline: WireInstant?
        let timer: UInt64?
    }

    private struct State: Sendable {
        /// The sends by number.
        ///
        /// The numbers have the order of the calls.
        var waiting: [UInt64: Waiting] = [:]
        /// A lower bound of the waiting numbers.
        var first: UInt64 = 1
        var last: UInt64 = 0
        var byteCount = 0
    }

    package let policy: OfflinePolicy
    private let state = Locked(State())
    private let events: TransportEventSource
    private let clock: any TimerSource

    /// - Parameters:
    ///   - policy: The limits of the queue.
    ///   - environment: Provides the clock.
    ///   - events: Receives an event for each send that the policy drops.
    package init(
        _ policy: OfflinePolicy,
        in environment: LinkEnvironment,
        reportingTo events: TransportEventSource
    ) {
        self.policy = policy
        self.events = events
        clock = environment.clock
    }

    /// The number of waiting sends.
    package var count: Int { depth.count }

    /// The number of waiting sends, and of the bytes of their bodies.
    var depth: (count: Int, byteCount: Int) {
        state.withLock { ($0.waiting.count, $0.byteCount) }
    }

    // MARK: Callers

    /// Puts a send at the end.
    ///
    /// - Parameter item: The send.
    /// - Returns: Its number, and the sends that were dropped to make room. The caller passes them to
    ///   ``fail(dropped:)`` with no lock held.
    /// - Throws: `limitExceeded`.
    package func append(_ item: Item) throws(WaybillError) -> (number: UInt64, dropped: [Item]) {
        guard policy.messageLimit > 0, item.byteCount <= policy.byteLimit else {
            // The send exceeds the limits even of an empty queue.
            throw refuse(item)
        }
        return try state.withLock { state throws(WaybillError) in
            var dropped: [Item] = []
            while !hasRoom(for: item, state) {
                guard policy.overflow == .dropOldest, let oldest = removeFirst(&state) else {
                    throw refuse(item)
                }
                dropped.append(oldest.waiting.item)
            }
            state.last += 1
            let number = state.last
            insert(item, number, until: item.timeout.map { clock.now.advanced(by: $0) }, &state)
            return (number, dropped)
        }
    }

    private func insert(
        _ item: Item,
        _ number: UInt64,
        until deadline: WireInstant?,
        _ state: inout State
    ) {
        let timer = deadline.map { deadline in
            clock.scheduleTimer(at: deadline) { [weak self] in self?.expire(number) }
        }
        state.waiting[number] = Waiting(item: item, deadline: deadline, timer: timer)
        state.byteCount += item.byteCount
        state.first = min(state.first, number)
    }

    private func remove(_ number: UInt64, _ state: inout State) -> Waiting? {
        guard let waiting = state.waiting.removeValue(forKey: number) else { return nil }
        if let timer = waiting.timer { clock.cancelTimer(timer) }
        state.byteCount -= waiting.item.byteCount
        return waiting
    }

    /// Takes the oldest send.
    private func removeFirst(_ state: inout State) -> (number: UInt64, waiting: Waiting)? {
        while state.first <= state.last {
            defer { state.first += 1 }
            if let waiting = remove(state.first, &state) { return (state.first, waiting) }
        }
        return nil
    }

    private func hasRoom(for item: Item, _ state: State) -> Bool {
        state.waiting.count < policy.messageLimit
            && item.byteCount <= policy.byteLimit - state.byteCount
    }

    /// Fails sends that were dropped to make room.
    package func fail(dropped items: [Item]) {
        for item in items {
            report(item, .oldestQueued)
            item.fail(Self.overflow)
        }
    }

    /// Returns the error for a send without room, and reports it unless the policy is `fail`.
    private func refuse(_ item: Item) -> WaybillError {
        // With the policy `fail` the send is not dropped, because its caller gets the error.
        if policy.overflow != .fail { report(item, .queueFull) }
        return Self.overflow
    }

    private func report(_ item: Item, _ reason: TransportEvent.DropReason) {
        events.report(
            .dropped(1, byteCount: item.byteCount, topic: item.topic, reason: reason)
        )
    }

    private static var overflow: WaybillError {
        WaybillError(.limitExceeded, "the offline queue is full: nothing was sent")
    }

    /// Withdraws a send.
    ///
    /// - Returns: Whether it was still waiting.
    package func withdraw(_ number: UInt64) -> Bool {
        state.withLock { remove(number, &$0) } != nil
    }

    private func expire(_ number: UInt64) {
        guard let item = state.withLock({ remove(number, &$0) })?.item else { return }
        report(item, .expired)
        item.fail(
            WaybillError(.timedOut, "the connection was not back in time: nothing was sent")
                .arriving(false)
        )
    }

    // MARK: Connections

    /// Hands all waiting sends to a connection.
    ///
    /// - Throws: `notConnected` if the connection is over; the remaining sends stay in the queue.
    package func flush(to connection: Connection) throws(WaybillError) {
        while let (number, waiting) = state.withLock({ removeFirst(&$0) }) {
            do throws(WaybillError) {
                try waiting.item.send(connection)
            } catch {
                // Back in its place, with the deadline that it had.
                state.withLock { insert(waiting.item, number, until: waiting.deadline, &$0) }
                throw error
            }
        }
    }

    /// Fails waiting sends, because no connection follows.
    ///
    /// - Parameters:
    ///   - error: The error.
    ///   - lasting: The error of those that wait for any connection; nil if they go on waiting.
    package func conclude(_ error: WaybillError, lasting: WaybillError?) {
        let items = state.withLock { state in
            let numbers = state.waiting.filter { lasting != nil || !$0.value.item.isLasting }.keys
            return numbers.sorted().compactMap { remove($0, &state)?.item }
        }
        for item in items { item.fail(item.isLasting ? lasting ?? error : error) }
    }
}
