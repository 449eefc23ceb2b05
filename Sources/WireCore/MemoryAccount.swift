/// The memory account of a connection: the bytes that wait, of every kind, and their limit.
///
/// It counts messages with their topics, headers and properties until the app takes them. A connection also compares it
/// with the answers that the peer does not read. Reading stops at seven eighths of the limit; the rest is for the data
/// of the last read.
///
/// What a policy may drop has three quarters of the limit, so that it never stops reading. When it needs room, the
/// policy of the largest holder makes it.
///
/// An account outlives a connection: waiting messages from an earlier connection of the same transport still count.
package final class MemoryAccount: Sendable {
    /// The default limit: 64 MiB.
    package static let defaultLimit = 64 << 20

    /// The bytes of a holder that wait for its consumers, without those that these have taken.
    package struct Waiting: Sendable {
        /// Those that its policy may drop.
        package var droppable = 0
        /// Those that only a consumer can take.
        package var firm = 0
        /// Whether it has failed, so that its droppable bytes go first.
        package var isOver = false
        /// Whether its policy holds reading when it is full.
        package var holdsBack = false

        package init() {}
    }

    /// A stream whose bytes wait.
    package struct Holder: Sendable {
        /// The topic of the subscription.
        let topic: String?
        let waiting: @Sendable () -> Waiting
        let drop: @Sendable (Int) -> Void
        let end: @Sendable () -> Void

        /// - Parameters:
        ///   - topic: The topic of the subscription.
        ///   - waiting: Returns what waits.
        ///   - drop: Drops at least so many bytes by the holder's policy, as far as it has them.
        ///   - end: Ends the stream, and drops all that waits.
        package init(
            topic: String?,
            waiting: @escaping @Sendable () -> Waiting,
            drop: @escaping @Sendable (Int) -> Void,
            end: @escaping @Sendable () -> Void
        ) {
            self.topic = topic
            self.waiting = waiting
            self.drop = drop
            self.end = end
        }
    }

    private struct State: Sendable {
        var byteCount = 0
        /// Those of them that a policy may drop, or that a consumer has taken of these.
        var droppableByteCount = 0
        var holders: [UInt64: Holder] = [:]
        var lastHolder: UInt64 = 0
        /// Whether a failed stream may still have messages.
        var mayHaveFailed = false
        var isFull = false
        var observers: [UInt64: @Sendable () -> Void] = [:]
        var lastObserver: UInt64 = 0
    }

    /// The number of waiting bytes at which reading stops.
    package let capacity: Int
    /// The number of bytes that policies may drop.
    package let droppableCapacity: Int
    /// The additional bytes that may wait while a connection is opened, so that the handshake can complete.
    package let reserve: Int
    private let state = Locked(State())

    /// Makes an empty account.
    ///
    /// - Parameter limit: The number of bytes that may wait; at least 1.
    package init(limit: Int = MemoryAccount.defaultLimit) {
        let limit = max(limit, 1)
        reserve = limit / 8
        capacity = limit - reserve
        droppableCapacity = limit / 4 * 3
    }

    /// The number of waiting bytes.
    package var byteCount: Int { state.withLock { $0.byteCount } }

    /// Whether the capacity was reached, and less than a quarter of it is free since.
    ///
    /// It is not full, either, when droppable bytes alone take more than the rest of it.
    package var isFull: Bool { state.withLock { $0.isFull } }

    /// Whether a consumer should give back what it has taken in portions: reading has stopped, or what it holds keeps
    /// others from the room for droppable bytes.
    package var asksForPortions: Bool {
        state.withLock { $0.isFull || $0.droppableByteCount > droppableCapacity / 2 }
    }

    /// Calls `body` after each change of ``isFull``, on the thread of the change with no lock held.
    ///
    /// Two simultaneous changes may call it in either order, so `body` must read ``isFull`` itself.
    ///
    /// - Returns: A number for ``stopObserving(_:)``.
    package func observe(_ body: @escaping @Sendable () -> Void) -> UInt64 {
        state.withLock { state in
            state.lastObserver += 1
            state.observers[state.lastObserver] = body
            return state.lastObserver
        }
    }

    /// Removes an observer.
    ///
    /// A call that has already begun may still run.
    package func stopObserving(_ observer: UInt64) {
        let gone = state.withLock { $0.observers.removeValue(forKey: observer) }
        // Released without a lock.
        withExtendedLifetime(gone) {}
    }

    /// Whether a number of further bytes stays below the capacity.
    package func hasRoom(for byteCount: Int) -> Bool {
        state.withLock { $0.byteCount + byteCount < capacity }
    }

    /// Whether further droppable bytes have room among the droppable ones, and do not stop reading.
    ///
    /// - Parameters:
    ///   - byteCount: Those of a message.
    ///   - pending: The droppable bytes that are about to be counted, negative for a release.
    ///   - all: All bytes that are about to be counted.
    /// - Returns: Whether they have room.
    package func hasRoom(forDroppable byteCount: Int, beside pending: Int, of all: Int) -> Bool {
        state.withLock { state in
            let droppable = state.droppableByteCount + pending
            return state.byteCount + all + byteCount < capacity
                // One message may wait, however small the account is.
                && (droppable <= 0 || droppable + byteCount <= droppableCapacity)
        }
    }

    /// Counts waiting bytes if they have room; ``isFull`` then does not change.
    ///
    /// - Parameters:
    ///   - byteCount: All bytes.
    ///   - droppable: Those of them that a policy may drop.
    /// - Returns: Whether they were counted.
    package func chargeIfRoom(_ byteCount: Int, droppable: Int = 0) -> Bool {
        state.withLock { state in
            guard state.byteCount + byteCount < capacity,
                droppable == 0 || state.droppableByteCount + droppable <= droppableCapacity
            else { return false }
            state.byteCount += byteCount
            state.droppableByteCount += droppable
            return true
        }
    }

    /// Counts bytes that start to wait, some of them droppable.
    package func charge(_ byteCount: Int, droppable: Int = 0) {
        change(by: byteCount, droppable)
    }

    /// Counts bytes that no longer wait, some of them droppable.
    package func release(_ byteCount: Int, droppable: Int = 0) {
        change(by: -byteCount, -droppable)
    }

    private func change(by difference: Int, _ droppable: Int) {
        guard difference != 0 || droppable != 0 else { return }
        let observers = state.withLock { state -> [@Sendable () -> Void] in
            state.byteCount += difference
            state.droppableByteCount += droppable
            let low = max(capacity - capacity / 4, state.droppableByteCount + reserve / 2)
            let isFull = state.byteCount >= (state.isFull ? min(low, capacity) : capacity)
            guard isFull != state.isFull else { return [] }
            state.isFull = isFull
            return state.observers.valuesInKeyOrder
        }
        for observer in observers { observer() }
    }

    // MARK: Holders

    /// Adds a stream whose bytes wait.
    ///
    /// - Returns: A number for ``remove(_:)``.
    package func add(_ holder: Holder) -> UInt64 {
        state.withLock { state in
            state.lastHolder += 1
            state.holders[state.lastHolder] = holder
            return state.lastHolder
        }
    }

    /// Removes a stream.
    package func remove(_ holder: UInt64) {
        let gone = state.withLock { $0.holders.removeValue(forKey: holder) }
        // Released without a lock.
        withExtendedLifetime(gone) {}
    }

    /// Has the largest holders drop bytes by their policies, until droppable bytes have room or the stream that needs it
    /// would be the largest itself.
    ///
    /// Call it with no lock held.
    ///
    /// - Parameters:
    ///   - byteCount: The bytes that need room.
    ///   - own: The droppable bytes that wait already in the stream that needs it.
    package func makeRoom(for byteCount: Int, besides own: Int) {
        // Each search is paid by so many bytes, so that thousands of holders are not searched for each message.
        let least = droppableCapacity / 128
        for _ in 0..<Self.maximumSearchCount {
            let (lack, isLargest, holders) = state.withLock { state in
                let lack = max(
                    state.droppableByteCount + byteCount - droppableCapacity,
                    state.byteCount + byteCount - capacity + 1
                )
                let isLargest = 2 * own >= state.droppableByteCount
                let searches = lack > 0 && (!isLargest || state.mayHaveFailed)
                return (lack, isLargest, searches ? state.holders : [:])
            }
            let largest = holders.values.map { (holder: $0, waiting: $0.waiting()) }
                .max { Self.rank(of: $0.waiting) < Self.rank(of: $1.waiting) }
            guard let (holder, waiting) = largest, waiting.droppable > 0 else { return }
            if waiting.isOver {
                holder.drop(waiting.droppable)
            } else {
                state.withLock { $0.mayHaveFailed = false }
                guard !isLargest else { return }
                let excess = waiting.droppable - own - byteCount
                guard excess > 0 else { return }
                holder.drop(min(max(lack, least), excess))
            }
        }
    }

    /// Notes that a stream has failed, whose messages make room first.
    package func noteFailure() {
        state.withLock { $0.mayHaveFailed = true }
    }

    private static let maximumSearchCount = 16

    private static func rank(of waiting: Waiting) -> (Int, Int) {
        (waiting.isOver && waiting.droppable > 0 ? 1 : 0, waiting.droppable)
    }

    /// The holder with the most bytes that only a consumer can take.
    ///
    /// - Parameter holdsBack: Only among those whose policy holds reading.
    /// - Returns: The holder, and its bytes; nil if none has any.
    private func largest(holdsBack: Bool) -> (holder: Holder, byteCount: Int)? {
        state.withLock { $0.holders }.values.map { (holder: $0, waiting: $0.waiting()) }
            .filter { $0.waiting.firm > 0 && (!holdsBack || $0.waiting.holdsBack) }
            .max { $0.waiting.firm < $1.waiting.firm }
            .map { ($0.holder, $0.waiting.firm) }
    }

    /// The topic of the holder that keeps reading stopped, and its bytes.
    package func largestHolder(holdsBack: Bool) -> (topic: String?, byteCount: Int)? {
        largest(holdsBack: holdsBack).map { ($0.holder.topic, $0.byteCount) }
    }

    /// Ends the holder that keeps reading stopped.
    package func endLargestHolder(holdsBack: Bool) {
        largest(holdsBack: holdsBack)?.holder.end()
    }
}
