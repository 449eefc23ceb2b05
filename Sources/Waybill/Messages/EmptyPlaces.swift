/// The empty places that dropped messages leave in an array of waiting messages.
///
/// The consumer skips an empty place. When half of the places are empty, the array is compacted. A drop therefore takes
/// constant time on average.
struct EmptyPlaces: Sendable {
    /// The delivery that marks an empty place; it is never handed to a consumer.
    private final class Nothing: MessageDelivery {
        static let shared = Nothing()

        func messageWasTaken() -> MessageValidity { .empty }

        func messageWasDropped() {}
    }

    private static let empty: Message = {
        var message = Message(topic: "")
        message.delivery = Nothing.shared
        message.isBoundedByPeer = true
        message.isEmptyPlace = true
        return message
    }()

    /// Whether this is an empty place.
    static func isEmpty(_ message: Message) -> Bool { message.isEmptyPlace }

    /// The array is not compacted below this number of empty places.
    private static let fewest = 64

    /// No place before this index holds a message that the policy counts.
    private var next = 0
    private var count = 0

    /// Takes the oldest message that the policy counts.
    ///
    /// - Returns: The message; nil when the protocol itself bounds all waiting messages.
    /// - Complexity: O(1), amortised over the messages.
    mutating func takeOldest(from waiting: inout [Message]) -> Message? {
        while next < waiting.count, !waiting[next].isCounted { next += 1 }
        guard next < waiting.count else { return nil }
        let oldest = waiting[next]
        waiting[next] = Self.empty
        next += 1
        count += 1
        if count >= Self.fewest, count * 2 > waiting.count { compact(&waiting) }
        return oldest
    }

    /// Takes the newest message that the policy counts.
    ///
    /// - Returns: The message; nil when the protocol itself bounds all waiting messages.
    /// - Complexity: O(k), where k messages that the policy does not count wait behind it.
    mutating func takeNewest(from waiting: inout [Message]) -> Message? {
        guard next < waiting.count,
            let index = waiting[next...].lastIndex(where: \.isCounted)
        else { return nil }
        return waiting.remove(at: index)
    }

    /// Inserts messages before all others.
    mutating func putBack(_ messages: ArraySlice<Message>, into waiting: inout [Message]) {
        waiting.insert(contentsOf: messages, at: 0)
        count = 0
        next = waiting.count
        compact(&waiting)
        next = 0
    }

    /// Removes messages, and every empty place.
    ///
    /// - Returns: The removed messages.
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

    private mutating func compact(_ waiting: inout [Message]) {
        let kept = waiting[..<next].filter { !$0.isEmptyPlace }
        waiting.replaceSubrange(..<next, with: kept)
        next = kept.count
        count = 0
    }
}
