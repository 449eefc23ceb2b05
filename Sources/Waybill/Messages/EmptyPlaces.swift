/// The places of dropped messages in an array of waiting messages.
///
/// A dropped message leaves an empty place behind, which the consumer skips. The array closes up when half of
/// its places are empty, so that a drop takes constant time on average.
struct EmptyPlaces: Sendable {
    /// Fills an empty place; not delivered.
    private final class Nothing: MessageDelivery {
        static let shared = Nothing()

        func messageWasTaken() -> MessageValidity { .empty }

        func messageWasDropped() {}
    }

    private static let empty: Message = {
        var message = Message(topic: "")
        message.delivery = Nothing.shared
        return message
    }()

    /// Whether this is the empty place of a message that was dropped.
    static func isEmpty(_ message: Message) -> Bool { message.delivery === Nothing.shared }

    /// Fewer empty places than this are not worth closing up.
    private static let fewest = 64

    /// No place before this one holds a message that the policy counts.
    private var next = 0
    private var count = 0

    /// Takes the oldest message that the policy counts.
    /// - Returns: The message; nil when the protocol itself bounds all that wait.
    /// - Complexity: O(1), amortised over the messages.
    mutating func takeOldest(from waiting: inout [Message]) -> Message? {
        while next < waiting.count, waiting[next].delivery != nil { next += 1 }
        guard next < waiting.count else { return nil }
        let oldest = waiting[next]
        waiting[next] = Self.empty
        next += 1
        count += 1
        if count >= Self.fewest, count * 2 > waiting.count { closeUp(&waiting) }
        return oldest
    }

    /// Puts messages before all others.
    mutating func putBack(_ messages: ArraySlice<Message>, into waiting: inout [Message]) {
        waiting.insert(contentsOf: messages, at: 0)
        count = 0
        next = waiting.count
        closeUp(&waiting)
        next = 0
    }

    /// Removes messages, and every empty place.
    /// - Returns: The messages that were removed.
    mutating func remove(
        from waiting: inout [Message],
        where isGone: (any MessageDelivery) -> Bool
    ) -> [Message] {
        var gone: [Message] = []
        waiting.removeAll { message in
            guard let delivery = message.delivery else { return false }
            guard delivery !== Nothing.shared else { return true }
            guard isGone(delivery.origin) else { return false }
            gone.append(message)
            return true
        }
        next = 0
        count = 0
        return gone
    }

    private mutating func closeUp(_ waiting: inout [Message]) {
        let kept = waiting[..<next].filter { $0.delivery !== Nothing.shared }
        waiting.replaceSubrange(..<next, with: kept)
        next = kept.count
        count = 0
    }
}
