package import WireCore

/// The calls that wait for the end of inbound QoS 2 exchanges, by packet identifier.
///
/// | event | a call that waits |
/// | --- | --- |
/// | PUBREL arrived, and PUBCOMP was written | completes |
/// | its time limit passes | expires; the exchange continues |
/// | the server has lost the session | ends |
package struct MQTTCompletions: Sendable {
    private struct Waiting: Sendable {
        let call: any MQTTCall
        let deadline: WireInstant
        /// Counts the calls, for their order.
        let number: UInt64
    }

    private var waiting: [UInt16: Waiting] = [:]
    private var lastNumber: UInt64 = 0
    /// A lower bound of the time limits; nil if no call waits.
    package private(set) var earliestDeadline: WireInstant?

    package init() {}

    package var isEmpty: Bool { waiting.isEmpty }

    /// The waiting calls, in the order in which they began to wait.
    package var calls: [any MQTTCall] {
        waiting.values.sorted { $0.number < $1.number }.map(\.call)
    }

    /// Adds a call for the exchange of a packet identifier.
    package mutating func insert(
        _ call: any MQTTCall,
        _ identifier: UInt16,
        deadline: WireInstant
    ) {
        lastNumber += 1
        waiting[identifier] = Waiting(call: call, deadline: deadline, number: lastNumber)
        earliestDeadline = earliestDeadline.map { min($0, deadline) } ?? deadline
    }

    /// Takes the call of an exchange that is over.
    package mutating func take(_ identifier: UInt16) -> (any MQTTCall)? {
        guard !waiting.isEmpty, let found = waiting.removeValue(forKey: identifier) else {
            return nil
        }
        if waiting.isEmpty { earliestDeadline = nil }
        return found.call
    }

    /// Takes the calls whose time limit has passed.
    package mutating func takeExpired(at now: WireInstant) -> [any MQTTCall] {
        guard let earliestDeadline, earliestDeadline <= now else { return [] }
        let expired = waiting.filter { $0.value.deadline <= now }
        for identifier in expired.keys { waiting[identifier] = nil }
        self.earliestDeadline = waiting.values.map(\.deadline).min()
        return expired.values.sorted { $0.number < $1.number }.map(\.call)
    }

    /// Withdraws a call.
    package mutating func cancel(_ call: any MQTTCall) {
        guard let index = waiting.firstIndex(where: { $0.value.call === call }) else { return }
        waiting.remove(at: index)
        if waiting.isEmpty { earliestDeadline = nil }
    }

    /// Takes all calls, because their exchanges do not continue.
    package mutating func takeAll() -> [any MQTTCall] {
        defer {
            waiting = [:]
            earliestDeadline = nil
        }
        return calls
    }
}
