import MQTTWire
import Waybill
import WireCore

/// Messages that nobody listens for yet, oldest first.
struct MQTTHeldMessages: Sendable {
    struct Held: Sendable {
        let publish: MQTTPublish
        let receipt: MQTTDeliveryReceipt?
        let deadline: WireInstant
        /// What it takes in memory.
        let byteCount: Int
    }

    private let policy: LateDeliveryPolicy
    private var messages: [Held] = []
    private var byteCount = 0

    init(_ policy: LateDeliveryPolicy) {
        self.policy = policy
    }

    /// When the next one has been kept long enough.
    var deadline: WireInstant? { messages.first?.deadline }

    /// Keeps a message.
    /// - Returns: What has to go for it; the message itself when there is no room for such a one at all.
    mutating func add(
        _ publish: MQTTPublish,
        _ receipt: MQTTDeliveryReceipt?,
        at now: WireInstant
    ) -> [Held] {
        var publish = publish
        // Out of the memory that it was received in, of which it would keep 64 KiB.
        publish.payload = publish.payload.withUnsafeBytes { ByteSlice(copying: $0) }
        let held = Held(
            publish: publish,
            receipt: receipt,
            deadline: now.advanced(by: policy.timeToLive),
            byteCount: MQTTMapping.message(publish).memoryByteCount
        )
        // The others stay: room for it cannot be made.
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

    /// Drops those whose receipts are void.
    mutating func remove(where isVoid: (MQTTDeliveryReceipt) -> Bool) {
        _ = take { held in held.receipt.map(isVoid) ?? false }
    }

    /// Takes those that have been kept long enough.
    mutating func takeExpired(at now: WireInstant) -> [Held] {
        take { $0.deadline <= now }
    }

    /// Takes those that a filter matches.
    mutating func take(matching filter: String) -> [Held] {
        var trie = MQTTTopicTrie<Bool>()
        trie[filter] = true
        return take { held in
            var isMatch = false
            trie.forEachMatch(of: held.publish.topic) { _ in isMatch = true }
            return isMatch
        }
    }

    /// Takes all.
    mutating func takeAll() -> [Held] { take { _ in true } }

    private mutating func take(_ isWanted: (Held) -> Bool) -> [Held] {
        let taken = messages.filter(isWanted)
        guard !taken.isEmpty else { return [] }
        messages.removeAll(where: isWanted)
        byteCount = messages.reduce(0) { $0 + $1.byteCount }
        return taken
    }
}
