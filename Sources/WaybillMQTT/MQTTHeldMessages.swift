import MQTTWire
import Waybill
import WireCore

/// Messages that arrived before a listener for them, oldest first.
struct MQTTHeldMessages: Sendable {
    struct Held: Sendable {
        let publish: MQTTPublish
        let receipt: MQTTDeliveryReceipt?
        let deadline: WireInstant
        /// The number of bytes of memory that the message takes.
        let byteCount: Int
    }

    private let policy: LateDeliveryPolicy
    private var messages: [Held] = []
    private var byteCount = 0

    init(_ policy: LateDeliveryPolicy) {
        self.policy = policy
    }

    /// The deadline of the oldest message; nil without messages.
    var deadline: WireInstant? { messages.first?.deadline }

    /// Keeps a message.
    ///
    /// - Returns: The messages that were removed to make room; the message itself if it exceeds the limit alone.
    mutating func add(
        _ publish: MQTTPublish,
        _ receipt: MQTTDeliveryReceipt?,
        at now: WireInstant
    ) -> [Held] {
        var publish = publish
        // Copied, because a slice would keep the whole receive buffer of 64 KiB alive.
        publish.payload = publish.payload.withUnsafeBytes { ByteSlice(copying: $0) }
        let held = Held(
            publish: publish,
            receipt: receipt,
            deadline: now.advanced(by: policy.timeToLive),
            byteCount: MQTTPublishMapping.message(publish).memoryByteCount
        )
        // The other messages stay, because removing them would not make enough room.
        guard held.byteCount <= policy.byteLimit else { return [held] }
        messages.append(held)
        byteCount += held.byteCount
        var gone = 0
        while gone < messages.count,
            messages.count - gone > policy.messageLimit || byteCount > policy.byteLimit
        {
            byteCount -= messages[gone].byteCount
            gone += 1
        }
        defer { messages.removeFirst(gone) }
        return Array(messages.prefix(gone))
    }

    /// Removes the messages whose receipts are no longer valid.
    mutating func remove(where isVoid: (MQTTDeliveryReceipt) -> Bool) {
        _ = take { held in held.receipt.map(isVoid) ?? false }
    }

    /// Takes the messages whose deadline has passed.
    mutating func takeExpired(at now: WireInstant) -> [Held] {
        take { $0.deadline <= now }
    }

    /// Takes the messages whose topics a filter matches.
    mutating func take(matching filter: String) -> [Held] {
        var trie = MQTTTopicTrie<Bool>()
        trie[filter] = true
        return take { held in
            var isMatch = false
            trie.forEachMatch(of: held.publish.topic) { _ in isMatch = true }
            return isMatch
        }
    }

    /// Takes all messages.
    mutating func takeAll() -> [Held] { take { _ in true } }

    private mutating func take(_ isWanted: (Held) -> Bool) -> [Held] {
        let taken = messages.filter(isWanted)
        guard !taken.isEmpty else { return [] }
        messages.removeAll(where: isWanted)
        byteCount = messages.reduce(0) { $0 + $1.byteCount }
        return taken
    }
}
