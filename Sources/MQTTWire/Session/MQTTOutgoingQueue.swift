package import WireCore

/// Messages that wait for a place in the window, first come, first served.
package struct MQTTOutgoingQueue: Sendable {
    /// One message and who waits for it.
    package struct Entry: Sendable {
        package let message: MQTTOutgoingMessage
        package let call: (any MQTTCall)?
        package let deadline: WireInstant
    }

    private var entries: [Entry?] = []
    private var head = 0

    package init() {}

    /// The number of places taken, withdrawn ones included.
    package var isEmpty: Bool { head == entries.count }

    /// Who waits.
    package var calls: [any MQTTCall] { entries[head...].compactMap { $0?.call } }

    package mutating func append(_ entry: Entry) {
        entries.append(entry)
    }

    /// Takes the first message that still waits.
    package mutating func popFirst() -> Entry? {
        while head < entries.count {
            let entry = entries[head]
            entries[head] = nil
            head += 1
            if head == entries.count {
                entries.removeAll(keepingCapacity: true)
                head = 0
            } else if head >= 1024, head * 2 > entries.count {
                entries.removeFirst(head)
                head = 0
            }
            if let entry { return entry }
        }
        return nil
    }

    /// Withdraws the message of a call, which has not been sent.
    /// - Returns: Whether it was here.
    /// - Complexity: O(messages that wait).
    package mutating func withdraw(_ call: any MQTTCall) -> Bool {
        guard let index = entries[head...].firstIndex(where: { $0?.call === call }) else {
            return false
        }
        entries[index] = nil
        return true
    }

    /// Withdraws the messages whose callers' time is up.
    /// - Returns: Those callers, and when the next one's time is up.
    package mutating func takeExpired(
        at now: WireInstant
    ) -> (expired: [any MQTTCall], next: WireInstant?) {
        var expired: [any MQTTCall] = []
        var next: WireInstant?
        for index in entries[head...].indices {
            guard let entry = entries[index], let call = entry.call else { continue }
            if entry.deadline <= now {
                expired.append(call)
                entries[index] = nil
            } else {
                next = min(next ?? entry.deadline, entry.deadline)
            }
        }
        return (expired, next)
    }
}
