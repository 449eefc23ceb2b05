import MQTTWire
import Waybill
import WireCore

/// Messages that arrived before a listener for them, oldest first.
///
/// A message without room is *left*: it is not kept and not acknowledged, so the server's window closes, and the server
/// sends it again over another connection.
struct MQTTHeldMessages: Sendable {
    struct Held: Sendable {
        let publish: MQTTPublish
        let receipt: MQTTDeliveryReceipt?
        let deadline: WireInstant
        /// The number of bytes of memory that the message takes.
        let byteCount: Int
    }

    private let messageLimit: Int
    private let byteLimit: Int
    private let timeToLive: Duration
    private var messages: [Held] = []
    private var byteCount = 0
    /// The receipts of the messages that are left, with their deadlines; as many as the receive window allows.
    private var left: [(receipt: MQTTDeliveryReceipt, deadline: WireInstant)] = []

    /// - Parameters:
    ///   - policy: The limits.
    ///   - memoryLimit: The limit of the transport's memory, of which an eighth is used where the policy states nothing.
    init(_ policy: LateDeliveryPolicy, memoryLimit: Int) {
        messageLimit = policy.messageLimit
        byteLimit =
            policy.byteLimit ?? min(LateDeliveryPolicy.defaultByteLimit, memoryLimit / 8)
        timeToLive = policy.timeToLive
    }

    /// The deadline of the oldest message; nil without messages.
    var deadline: WireInstant? {
        guard let first = left.first?.deadline else { return messages.first?.deadline }
        return messages.first.map { min($0.deadline, first) } ?? first
    }

    /// Whether a message without room was left.
    var hasLeft: Bool { !left.isEmpty }

    /// Keeps a message, or leaves it.
    ///
    /// - Returns: False if it is neither kept nor left: without room and without an acknowledgement.
    mutating func add(
        _ publish: MQTTPublish,
        _ receipt: MQTTDeliveryReceipt?,
        at now: WireInstant
    ) -> Bool {
        let deadline = now.advanced(by: timeToLive)
        let size = MQTTPublishMapping.message(publish).memoryByteCount
        // Behind one that is left, the others are, too: they come in order.
        guard left.isEmpty || receipt == nil, messages.count < messageLimit,
            size <= byteLimit - byteCount
        else {
            guard let receipt else { return false }
            left.append((receipt, deadline))
            return true
        }
        var publish = publish
        // Copied, because a slice would keep the whole receive buffer of 64 KiB alive.
        publish.payload = publish.payload.withUnsafeBytes { ByteSlice(copying: $0) }
        messages.append(
            Held(publish: publish, receipt: receipt, deadline: deadline, byteCount: size)
        )
        byteCount += size
        return true
    }

    /// Keeps messages again, before those that have come since.
    mutating func putBack(_ held: [Held]) {
        messages.insert(contentsOf: held, at: 0)
        byteCount += held.reduce(0) { $0 + $1.byteCount }
    }

    /// Removes the messages whose receipts are no longer valid.
    mutating func remove(where isVoid: (MQTTDeliveryReceipt) -> Bool) {
        left.removeAll { isVoid($0.receipt) }
        _ = take { held in held.receipt.map(isVoid) ?? false }
    }

    /// Takes the messages whose deadline has passed, and the receipts of those that were left until then.
    mutating func takeExpired(at now: WireInstant) -> ([Held], left: [MQTTDeliveryReceipt]) {
        let over = left.prefix { $0.deadline <= now }
        left.removeFirst(over.count)
        return (take { $0.deadline <= now }, over.map(\.receipt))
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

    /// Takes the receipts of the messages that are left.
    mutating func takeLeft() -> [MQTTDeliveryReceipt] {
        defer { left = [] }
        return left.map(\.receipt)
    }

    /// Forgets all messages.
    ///
    /// - Returns: Their receipts.
    mutating func takeAll() -> [MQTTDeliveryReceipt] {
        takeLeft() + take { _ in true }.compactMap(\.receipt)
    }

    private mutating func take(_ isWanted: (Held) -> Bool) -> [Held] {
        let taken = messages.filter(isWanted)
        guard !taken.isEmpty else { return [] }
        messages.removeAll(where: isWanted)
        byteCount = messages.reduce(0) { $0 + $1.byteCount }
        return taken
    }
}
