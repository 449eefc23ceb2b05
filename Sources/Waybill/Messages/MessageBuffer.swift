import WireCore

/// The bounded queue of messages for one consumer of a subscription.
final class MessageBuffer: Sendable {
    /// The consequences of adding messages.
    struct Outcome: Sendable {
        enum Pressure: Sendable {
            case none, holdBack, fail
        }

        var dropped = 0
        var droppedBytes = 0
        var pressure = Pressure.none

        mutating func drop(_ message: Message) {
            dropped += 1
            droppedBytes += message.body.count
        }
    }

    private struct Counts: Sendable {
        var bytes = 0
        var messages = 0
        var dropped = 0
        var places = EmptyPlaces()
        /// The number of bytes charged to the account for waiting messages.
        var charged = 0
        /// The number of bytes charged for messages that the consumer has taken and may still hold.
        var lent = 0
        /// Whether the buffer is closed; messages that still arrive are dropped.
        var isClosed = false

        /// Starts counting at zero, since no message waits.
        mutating func reset() {
            bytes = 0
            messages = 0
            places = EmptyPlaces()
        }
    }

    /// The state of adding a batch, message by message.
    private struct Addition {
        var outcome = Outcome()
        var discarded: [Message] = []
        /// The number of bytes to charge to the account after the locks are released; negative for a release.
        var charge = 0

        mutating func drop(_ message: Message) {
            outcome.drop(message)
            discarded.append(message)
        }
    }

    private let mailbox = Mailbox<Message>()
    /// Counts only messages that the policy bounds; the protocol itself bounds the others.
    private let counts = Locked(Counts())
    private let policy: BufferPolicy
    /// The account for waiting messages; nil where a custom transport bounds them.
    private let account: MemoryAccount?

    init(policy: BufferPolicy, account: MemoryAccount?) {
        self.policy = policy
        self.account = account
    }

    var droppedCount: Int { counts.withLock { $0.dropped } }

    /// Whether more messages wait than the policy allows.
    var isFull: Bool {
        mailbox.withWaiting { waiting in
            let counts = counts.withLock { $0 }
            return !waiting.isEmpty
                && (counts.messages >= policy.messageLimit || counts.bytes > policy.byteLimit)
        }
    }

    /// Adds a batch, dropping messages as the policy says.
    func append(_ batch: consuming [Message]) -> Outcome {
        var batch = batch
        let sum = sum(of: batch)
        let addition = mailbox.append { waiting in
            counts.withLock { counts in
                var addition = Addition()
                guard !counts.isClosed else {
                    addition.discarded = batch
                    return addition
                }
                if waiting.isEmpty { counts.reset() }
                // The usual case: all messages fit.
                if counts.messages + sum.counted <= policy.messageLimit,
                    counts.bytes + sum.bytes <= policy.byteLimit,
                    account?.chargeIfRoom(sum.memory) ?? true
                {
                    counts.bytes += sum.bytes
                    counts.messages += sum.counted
                    counts.charged += sum.memory
                    if waiting.isEmpty {
                        swap(&waiting, &batch)
                    } else {
                        for index in batch.indices { waiting.append(batch[index].moveOut()) }
                    }
                    return addition
                }
                for message in batch { add(message, &waiting, &counts, &addition) }
                counts.dropped += addition.outcome.dropped
                counts.charged += addition.charge
                return addition
            }
        }
        // Called without a lock: at its limit the account stops reading from the peer, and that looks at this buffer.
        account?.charge(addition.charge)
        for message in addition.discarded { message.delivery?.messageWasDropped() }
        return addition.outcome
    }

    /// What a batch adds: the messages that the policy counts, the bytes of their bodies, and the memory of all.
    private func sum(of batch: [Message]) -> (counted: Int, bytes: Int, memory: Int) {
        var sum = (counted: 0, bytes: 0, memory: 0)
        // By index, because iterating copies each message.
        for index in batch.indices {
            if batch[index].delivery == nil {
                sum.bytes += batch[index].body.count
                sum.counted += 1
            }
            if account != nil { sum.memory += batch[index].memoryByteCount }
        }
        return sum
    }

    /// Adds a single message.
    ///
    /// The policy covers only messages without acknowledgement. It applies at its own limits, and when the account has
    /// no room.
    private func add(
        _ message: Message,
        _ waiting: inout [Message],
        _ counts: inout Counts,
        _ addition: inout Addition
    ) {
        let memory = account == nil ? 0 : message.memoryByteCount
        guard message.delivery == nil else {
            addition.charge += memory
            return waiting.append(message)
        }
        let size = message.body.count
        while isFull(counts, adding: size)
            || (counts.messages > 0 && account?.hasRoom(for: addition.charge + memory) == false)
        {
            switch policy.overflow {
            case .dropOldest:
                guard let oldest = counts.places.takeOldest(from: &waiting) else { break }
                counts.bytes -= oldest.body.count
                counts.messages -= 1
                if account != nil { addition.charge -= oldest.memoryByteCount }
                addition.drop(oldest)
                continue
            case .dropNewest: return addition.drop(message)
            case .fail:
                addition.outcome.pressure = .fail
                return addition.drop(message)
            case .holdBack:
                // A message that was already read is kept; the peer sends no more.
                addition.outcome.pressure = .holdBack
            }
            break
        }
        counts.bytes += size
        counts.messages += 1
        addition.charge += memory
        waiting.append(message)
    }

    /// Whether adding a message exceeds the limits; a message larger than the limit may wait alone.
    private func isFull(_ counts: Counts, adding size: Int) -> Bool {
        counts.messages > 0
            && (counts.messages >= policy.messageLimit || counts.bytes + size > policy.byteLimit)
    }

    /// Takes all waiting messages.
    ///
    /// The account stays charged for them until ``releaseTaken()``.
    func take() async throws -> [Message]? {
        try await mailbox.take {
            counts.withLock { counts in
                counts.lent += counts.charged
                counts.charged = 0
            }
        }
    }

    /// Releases the account's charge for all messages that the consumer has taken.
    func releaseTaken() {
        guard let account else { return }
        let lent = counts.withLock { counts in
            defer { counts.lent = 0 }
            return counts.lent
        }
        account.release(lent)
    }

    /// Releases the account's charge for some of the messages that the consumer has taken.
    func releaseTaken(_ byteCount: Int) {
        guard let account else { return }
        counts.withLock { $0.lent -= byteCount }
        account.release(byteCount)
    }

    /// The number of bytes charged for a message; zero for an empty place.
    static func memoryByteCount(of message: Message) -> Int {
        EmptyPlaces.isEmpty(message) ? 0 : message.memoryByteCount
    }

    /// Whether taken messages should be released in portions, because reading from the peer has stopped.
    var isAccountFull: Bool { account?.isFull ?? false }

    /// Puts messages back that the consumer took and did not use.
    func putBack(_ messages: ArraySlice<Message>) {
        guard !messages.isEmpty else { return releaseTaken() }
        let memory = account == nil ? 0 : messages.reduce(0) { $0 + Self.memoryByteCount(of: $1) }
        let isClosed = mailbox.append { waiting in
            counts.withLock { counts in
                guard !counts.isClosed else { return true }
                if waiting.isEmpty { counts.reset() }
                counts.places.putBack(messages, into: &waiting)
                for message in messages where message.delivery == nil {
                    counts.bytes += message.body.count
                    counts.messages += 1
                }
                counts.charged += memory
                counts.lent -= memory
                return false
            }
        }
        releaseTaken()
        guard isClosed else { return }
        for message in messages { message.delivery?.messageWasDropped() }
    }

    func remove(where isGone: (any MessageDelivery) -> Bool) {
        let (gone, memory) = mailbox.append { waiting in
            counts.withLock { counts in
                let gone = counts.places.remove(from: &waiting, where: isGone)
                let memory = account == nil ? 0 : gone.reduce(0) { $0 + $1.memoryByteCount }
                counts.charged -= memory
                return (gone, memory)
            }
        }
        account?.release(memory)
        for message in gone { message.delivery?.messageWasDropped() }
    }

    func finish(_ end: Mailbox<Message>.Ending) {
        mailbox.finish(end)
    }

    /// Drops the waiting messages, and those that still arrive.
    func discard() {
        let (dropped, charged) = mailbox.append { waiting in
            let charged = counts.withLock { counts in
                counts.isClosed = true
                defer { counts.charged = 0 }
                return counts.charged
            }
            defer { waiting = [] }
            return (waiting, charged)
        }
        account?.release(charged)
        for message in dropped { message.delivery?.messageWasDropped() }
    }
}
