package import WireCore

/// Messages that wait for room in the window, in order.
package struct MQTTOutgoingQueue: Sendable {
    /// A message and its call.
    package struct Entry: Sendable {
        package let message: MQTTOutgoingMessage
        package var call: (any MQTTCall)?
        package let deadline: WireInstant

        package init(
            message: MQTTOutgoingMessage,
            call: (any MQTTCall)?,
            deadline: WireInstant
        ) {
            self.message = message
            self.call = call
            self.deadline = deadline
        }
    }

    /// The messages from `head` on; nil for one that was removed out of its turn.
    private var entries: [Entry?] = []
    private var head = 0

    package private(set) var count = 0

    package init() {}

    /// The bytes of the waiting messages' topics and payloads.
    ///
    /// - Complexity: O(waiting messages).
    package var byteCount: Int {
        entries[head...].reduce(0) { sum, entry in
            guard let message = entry?.message else { return sum }
            return sum + message.publish.topic.utf8.count + message.payload.wireByteCount
        }
    }

    /// Whether no message waits.
    package var isEmpty: Bool { count == 0 }

    /// The waiting calls.
    package var calls: [any MQTTCall] { entries[head...].compactMap { $0?.call } }

    /// The earliest time limit of a call; nil if no call waits.
    ///
    /// - Complexity: O(waiting messages).
    package var earliestDeadline: WireInstant? {
        entries[head...].compactMap { $0?.call == nil ? nil : $0?.deadline }.min()
    }

    package mutating func append(_ entry: Entry) {
        entries.append(entry)
        count += 1
    }

    /// Inserts messages before all others.
    package mutating func prepend(_ first: [Entry]) {
        entries.replaceSubrange(..<head, with: first)
        head = 0
        count += first.count
    }

    /// Removes the messages that a check refuses.
    ///
    /// - Returns: These messages, each with the error.
    package mutating func takeRefused(
        _ check: (MQTTOutgoingMessage) throws(MQTTSendError) -> Void
    ) -> [(entry: Entry, error: MQTTSendError)] {
        var refused: [(Entry, MQTTSendError)] = []
        for index in entries[head...].indices {
            guard let entry = entries[index] else { continue }
            do throws(MQTTSendError) {
                try check(entry.message)
            } catch {
                refused.append((entry, error))
                remove(at: index)
            }
        }
        closeGaps()
        return refused
    }

    /// Removes the messages that belong to this connection only.
    ///
    /// - Returns: These messages, in order.
    mutating func takeSentOnce() -> [Entry] {
        var found: [Entry] = []
        for index in entries[head...].indices {
            guard let entry = entries[index], entry.message.isSentOnce else { continue }
            found.append(entry)
            remove(at: index)
        }
        closeGaps()
        return found
    }

    /// Leaves a gap, so that the other indices stay; ``closeGaps()`` must follow.
    private mutating func remove(at index: Int) {
        entries[index] = nil
        count -= 1
    }

    /// Keeps the gaps fewer than the messages, or few.
    private mutating func closeGaps() {
        let length = entries.count - head
        if count == 0 {
            removeSlots()
        } else if length > 64, length > count * 2 {
            entries = entries[head...].filter { $0 != nil }
            head = 0
        }
    }

    private mutating func removeSlots() {
        entries.removeAll(keepingCapacity: true)
        head = 0
    }

    /// The packet identifier of the first message that still waits, if that is a stored message.
    var firstReservedIdentifier: UInt16? {
        firstIndex.flatMap { entries[$0]?.message.reservedIdentifier }
    }

    /// What is known of the first message that still waits.
    var firstSuspicion: ReplaySuspicion.Record {
        firstIndex.flatMap { entries[$0]?.message.suspicion } ?? .clear
    }

    private var firstIndex: Int? {
        for index in head..<entries.count where entries[index] != nil { return index }
        return nil
    }

    /// Takes the first message that still waits.
    package mutating func popFirst() -> Entry? {
        while head < entries.count {
            let entry = entries[head]
            entries[head] = nil
            head += 1
            if entry != nil { count -= 1 }
            if count == 0 {
                removeSlots()
            } else if head >= 1024, head * 2 > entries.count {
                entries.removeFirst(head)
                head = 0
            }
            if let entry { return entry }
        }
        return nil
    }

    /// Withdraws a call with its message.
    ///
    /// - Returns: Whether the call was found.
    /// - Complexity: O(waiting messages).
    package mutating func withdraw(_ call: any MQTTCall) -> Bool {
        guard let index = entries[head...].firstIndex(where: { $0?.call === call }) else {
            return false
        }
        remove(at: index)
        closeGaps()
        return true
    }

    /// Withdraws a stored message.
    ///
    /// - Returns: Whether it was found.
    /// - Complexity: O(waiting messages).
    mutating func withdraw(_ storedNumber: UInt64) -> Bool {
        let index = entries[head...].firstIndex { $0?.message.storedNumber == storedNumber }
        guard let index else { return false }
        remove(at: index)
        closeGaps()
        return true
    }

    /// Withdraws the calls whose time limit has passed, with their messages.
    ///
    /// - Returns: These calls, and the next time limit.
    package mutating func takeExpired(
        at now: WireInstant
    ) -> (expired: [any MQTTCall], next: WireInstant?) {
        var expired: [any MQTTCall] = []
        var next: WireInstant?
        for index in entries[head...].indices {
            guard let entry = entries[index], let call = entry.call else { continue }
            if entry.deadline <= now {
                expired.append(call)
                remove(at: index)
            } else {
                next = min(next ?? entry.deadline, entry.deadline)
            }
        }
        closeGaps()
        return (expired, next)
    }
}
