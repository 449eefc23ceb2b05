package import Waybill
package import WireCore

/// A send that waits until its message is stored.
package typealias StoreCall = PendingCall<StoredMessage.ID>

/// The messages that a store was given and has not answered for.
///
/// A store cannot be made to let go of a message. So the messages whose calls have ended before are counted, and bounded.
/// A message counts with half of the limit of bytes at most: one large message alone refuses no other.
///
/// | event | state of the message → next state |
/// | --- | --- |
/// | ``begin(_:byteCount:deadline:)``, and few are late | none → waiting |
/// | ``begin(_:byteCount:deadline:)``, and too many are late | none: refused |
/// | ``takeExpired(at:)``, after the deadline | waiting → late |
/// | ``abandon(_:)``: the call has ended | waiting → late |
/// | ``end(_:)``: the store has answered | waiting, late → none |
package struct StoreWaits: Sendable {
    private struct Waiting: Sendable {
        let call: StoreCall
        let byteCount: Int
    }

    /// The number of late messages from which on others are refused; at least one.
    let messageLimit: Int
    /// The number of their bytes from which on others are refused; at least two.
    let byteLimit: Int
    private var waiting: [UInt64: Waiting] = [:]
    private var late: [UInt64: Int] = [:]
    private var lateByteCount = 0
    private var last: UInt64 = 0
    private var deadlines = DeadlineHeap()

    /// The earliest deadline of a call that waits; nil without one.
    package var earliestDeadline: WireInstant? { deadlines.first?.time }

    /// - Parameters:
    ///   - messageLimit: The number of late messages.
    ///   - byteLimit: The number of their bytes; two messages may exceed it.
    package init(messageLimit: Int, byteLimit: Int) {
        self.messageLimit = max(1, messageLimit)
        self.byteLimit = max(2, byteLimit)
    }

    /// Notes a message that the store is given next.
    ///
    /// - Returns: Its number here; nil if the store may not be given it.
    package mutating func begin(
        _ call: StoreCall,
        byteCount: Int,
        deadline: WireInstant
    ) -> UInt64? {
        guard late.count < messageLimit, lateByteCount < byteLimit else { return nil }
        last += 1
        waiting[last] = Waiting(call: call, byteCount: min(byteCount, byteLimit / 2))
        deadlines.add(last, at: deadline)
        return last
    }

    /// Takes the calls whose deadlines have passed, the earliest first.
    ///
    /// - Complexity: O(log n) for each call.
    package mutating func takeExpired(at now: WireInstant) -> [StoreCall] {
        var calls: [StoreCall] = []
        while let first = deadlines.first, first.time <= now {
            deadlines.removeFirst()
            guard let call = waiting[first.number]?.call else { continue }
            calls.append(call)
            abandon(first.number)
        }
        return calls
    }

    /// Notes that a call has ended; nothing happens if the store has answered before.
    package mutating func abandon(_ number: UInt64) {
        guard let byteCount = waiting.removeValue(forKey: number)?.byteCount else { return }
        late[number] = byteCount
        lateByteCount += byteCount
        removeEndedDeadlines()
    }

    /// Notes the store's answer.
    package mutating func end(_ number: UInt64) {
        if waiting.removeValue(forKey: number) != nil { removeEndedDeadlines() }
        lateByteCount -= late.removeValue(forKey: number) ?? 0
    }

    private mutating func removeEndedDeadlines() {
        deadlines.removeClosed(openCount: waiting.count) { [waiting] in waiting[$0] != nil }
    }
}
