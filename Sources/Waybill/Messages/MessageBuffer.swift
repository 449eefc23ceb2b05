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
        /// The bytes charged to the account for waiting messages.
        var charged = Charge()
        /// The bytes charged for messages that the consumer has taken and may still hold.
        var lent = Charge()
        /// Whether the policy has failed the stream, so that its messages make room for others first.
        var isOver = false
        /// Whether the buffer is closed; messages that still arrive are dropped.
        var isClosed = false

        /// Starts counting at zero, since no message waits.
        mutating func reset() {
            bytes = 0
            messages = 0
            places = EmptyPlaces()
        }
    }

    /// Bytes charged to the account.
    struct Charge: Sendable {
        var all = 0
        /// Those that the policy may drop, or might have dropped before the consumer took them.
        var droppable = 0

        static func += (left: inout Charge, right: Charge) {
            left.all += right.all
            left.droppable += right.droppable
        }

        static func -= (left: inout Charge, right: Charge) {
            left.all -= right.all
            left.droppable -= right.droppable
        }
    }

    /// The state of adding a batch, message by message.
    private struct Addition {
        var outcome = Outcome()
        var discarded: [Message] = []
        /// The bytes to charge to the account after the locks are released; negative for a release.
        var charge = Charge()

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
        let (isDone, own) = mailbox.append { waiting in
            counts.withLock { counts in
                guard !counts.isClosed else { return (false, 0) }
                if waiting.isEmpty { counts.reset() }
                // The usual case: all messages fit.
                guard counts.messages + sum.counted <= policy.messageLimit,
                    counts.bytes + sum.bytes <= policy.byteLimit,
                    account?.chargeIfRoom(sum.memory.all, droppable: sum.memory.droppable) ?? true
                else { return (false, counts.charged.droppable) }
                counts.bytes += sum.bytes
                counts.messages += sum.counted
                counts.charged += sum.memory
                if waiting.isEmpty {
                    swap(&waiting, &batch)
                } else {
                    for index in batch.indices { waiting.append(batch[index].moveOut()) }
                }
                return (true, 0)
            }
        }
        guard !isDone else { return Outcome() }
        // With no lock held, because other streams may have to drop messages.
        if sum.memory.droppable > 0 { account?.makeRoom(for: sum.memory.droppable, besides: own) }
        return change { waiting, counts, addition in
            guard !counts.isClosed else { return addition.discarded = batch }
            if waiting.isEmpty { counts.reset() }
            for message in batch { add(message, &waiting, &counts, &addition) }
        }
    }

    /// Changes the waiting messages, and carries out the consequences with no lock held.
    private func change(
        _ body: (inout [Message], inout Counts, inout Addition) -> Void
    ) -> Outcome {
        let addition = mailbox.append { waiting in
            counts.withLock { counts in
                var addition = Addition()
                body(&waiting, &counts, &addition)
                counts.dropped += addition.outcome.dropped
                counts.charged += addition.charge
                return addition
            }
        }
        // At its limit the account stops reading from the peer, and that looks at this buffer.
        account?.charge(addition.charge.all, droppable: addition.charge.droppable)
        for message in addition.discarded { message.delivery?.messageWasDropped() }
        return addition.outcome
    }

    /// The waiting messages, in bytes of memory.
    var waiting: MemoryAccount.Waiting {
        counts.withLock { counts in
            var waiting = MemoryAccount.Waiting()
            waiting.droppable = counts.charged.droppable
            waiting.firm = counts.charged.all - counts.charged.droppable
            waiting.isOver = counts.isOver
            return waiting
        }
    }

    /// Drops at least so many bytes by the policy, as far as it may drop them.
    func drop(_ byteCount: Int) -> Outcome {
        change { waiting, counts, addition in
            let fails = policy.overflow == .fail
            if fails, !counts.isOver { addition.outcome.pressure = .fail }
            while fails || -addition.charge.droppable < byteCount {
                let isNewest = policy.overflow == .dropNewest
                let message =
                    isNewest
                    ? counts.places.takeNewest(from: &waiting)
                    : counts.places.takeOldest(from: &waiting)
                guard let message else { return }
                remove(message, &counts, &addition)
            }
        }
    }

    /// Notes that a message was removed from the waiting ones.
    private func remove(_ message: Message, _ counts: inout Counts, _ addition: inout Addition) {
        counts.bytes -= message.body.count
        counts.messages -= 1
        if account != nil { addition.charge -= charge(of: message) }
        addition.drop(message)
    }

    /// What a message is charged with; zero for an empty place.
    func charge(of message: Message) -> Charge {
        guard !EmptyPlaces.isEmpty(message) else { return Charge() }
        let count = message.memoryByteCount
        let isDroppable = message.isCounted && policy.overflow != .holdBack
        return Charge(all: count, droppable: isDroppable ? count : 0)
    }

    /// What a batch adds: the messages that the policy counts, the bytes of their bodies, and the memory of all.
    private func sum(of batch: [Message]) -> (counted: Int, bytes: Int, memory: Charge) {
        var sum = (counted: 0, bytes: 0, memory: Charge())
        let hasDroppable = policy.overflow != .holdBack
        // By index, because iterating copies each message.
        for index in batch.indices {
            let isCounted = batch[index].isCounted
            if isCounted {
                sum.bytes += batch[index].body.count
                sum.counted += 1
            }
            guard account != nil else { continue }
            let count = batch[index].memoryByteCount
            sum.memory.all += count
            if isCounted, hasDroppable { sum.memory.droppable += count }
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
        let memory = account == nil ? Charge() : charge(of: message)
        guard message.isCounted else {
            addition.charge += memory
            return waiting.append(message)
        }
        let size = message.body.count
        while isFull(counts, adding: size) || lacksRoom(for: memory, counts, addition) {
            switch policy.overflow {
            case .dropOldest:
                guard let oldest = counts.places.takeOldest(from: &waiting) else {
                    // Others have all the room.
                    return addition.drop(message)
                }
                remove(oldest, &counts, &addition)
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

    /// Whether a message has no room in the account.
    private func lacksRoom(for memory: Charge, _ counts: Counts, _ addition: Addition) -> Bool {
        guard let account else { return false }
        guard memory.droppable > 0 else {
            return counts.messages > 0 && !account.hasRoom(for: addition.charge.all + memory.all)
        }
        return !account.hasRoom(
            forDroppable: memory.droppable,
            beside: addition.charge.droppable,
            of: addition.charge.all
        )
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
                counts.charged = Charge()
            }
        }
    }

    /// Releases the account's charge for all messages that the consumer has taken.
    func releaseTaken() {
        guard let account else { return }
        let lent = counts.withLock { counts in
            defer { counts.lent = Charge() }
            return counts.lent
        }
        account.release(lent.all, droppable: lent.droppable)
    }

    /// Releases the account's charge for some of the messages that the consumer has taken.
    func releaseTaken(_ charge: Charge) {
        guard let account else { return }
        counts.withLock { $0.lent -= charge }
        account.release(charge.all, droppable: charge.droppable)
    }

    /// Whether taken messages should be released in portions.
    var asksForPortions: Bool { account?.asksForPortions ?? false }

    /// Puts messages back that the consumer took and did not use.
    func putBack(_ messages: ArraySlice<Message>) {
        guard !messages.isEmpty else { return releaseTaken() }
        var memory = Charge()
        if account != nil { for message in messages { memory += charge(of: message) } }
        let isClosed = mailbox.append { waiting in
            counts.withLock { [memory] counts in
                guard !counts.isClosed else { return true }
                if waiting.isEmpty { counts.reset() }
                counts.places.putBack(messages, into: &waiting)
                for message in messages where message.isCounted {
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
                // They have deliveries, so no policy drops them.
                counts.charged.all -= memory
                return (gone, memory)
            }
        }
        account?.release(memory)
        for message in gone { message.delivery?.messageWasDropped() }
    }

    func finish(_ end: Mailbox<Message>.Ending) {
        if case .failed = end {
            counts.withLock { $0.isOver = true }
            account?.noteFailure()
        }
        mailbox.finish(end)
    }

    /// Drops the waiting messages, and those that still arrive.
    func discard() {
        let (dropped, charged) = mailbox.append { waiting in
            let charged = counts.withLock { counts in
                counts.isClosed = true
                defer { counts.charged = Charge() }
                return counts.charged
            }
            defer { waiting = [] }
            return (waiting, charged)
        }
        account?.release(charged.all, droppable: charged.droppable)
        for message in dropped { message.delivery?.messageWasDropped() }
    }
}
