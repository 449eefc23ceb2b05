import WireCore

/// What waits for one consumer of a subscription, within bounds.
final class MessageBuffer: Sendable {
    /// What follows from adding messages.
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
    }

    private let mailbox = Mailbox<Message>()
    /// Of those messages that the policy counts: the protocol itself bounds the others.
    private let counts = Locked(Counts())
    private let policy: BufferPolicy

    init(policy: BufferPolicy) {
        self.policy = policy
    }

    var droppedCount: Int { counts.withLock { $0.dropped } }

    /// Whether more waits than the policy allows.
    var isFull: Bool {
        mailbox.withWaiting { waiting in
            let counts = counts.withLock { $0 }
            return !waiting.isEmpty
                && (counts.messages >= policy.messageLimit || counts.bytes > policy.byteLimit)
        }
    }

    /// Adds a batch, dropping what the policy says.
    func append(_ batch: consuming [Message]) -> Outcome {
        var batch = batch
        var victims: [Message] = []
        let outcome = mailbox.append { waiting in
            counts.withLock { counts in
                var outcome = Outcome()
                if waiting.isEmpty { counts = Counts(dropped: counts.dropped) }
                // Nearly always all fit.
                let bytes = batch.reduce(0) { $0 + ($1.delivery == nil ? $1.body.count : 0) }
                if counts.messages + batch.count <= policy.messageLimit,
                    counts.bytes + bytes <= policy.byteLimit
                {
                    counts.bytes += bytes
                    counts.messages += batch.count
                    if waiting.isEmpty { swap(&waiting, &batch) } else { waiting += batch }
                    return outcome
                }
                for message in batch {
                    add(message, &waiting, &counts, &outcome, &victims)
                }
                counts.dropped += outcome.dropped
                return outcome
            }
        }
        for victim in victims { victim.delivery?.messageWasDropped() }
        return outcome
    }

    private func add(
        _ message: Message,
        _ waiting: inout [Message],
        _ counts: inout Counts,
        _ outcome: inout Outcome,
        _ victims: inout [Message]
    ) {
        if message.delivery != nil { return waiting.append(message) }
        let size = message.body.count
        while isFull(counts, adding: size) {
            switch policy.overflow {
            case .dropOldest:
                guard let oldest = counts.places.takeOldest(from: &waiting) else { break }
                counts.bytes -= oldest.body.count
                counts.messages -= 1
                outcome.drop(oldest)
                victims.append(oldest)
                continue
            case .dropNewest:
                outcome.drop(message)
                victims.append(message)
                return
            case .fail:
                outcome.pressure = .fail
                outcome.drop(message)
                victims.append(message)
                return
            case .holdBack:
                // What was read already is kept; the peer sends no more.
                outcome.pressure = .holdBack
            }
            break
        }
        counts.bytes += size
        counts.messages += 1
        waiting.append(message)
    }

    /// A message larger than the limit may wait alone.
    private func isFull(_ counts: Counts, adding size: Int) -> Bool {
        counts.messages > 0
            && (counts.messages >= policy.messageLimit || counts.bytes + size > policy.byteLimit)
    }

    func take() async throws -> [Message]? {
        try await mailbox.take()
    }

    func putBack(_ messages: ArraySlice<Message>) {
        guard !messages.isEmpty else { return }
        mailbox.append { waiting in
            counts.withLock { counts in
                if waiting.isEmpty { counts = Counts(dropped: counts.dropped) }
                counts.places.putBack(messages, into: &waiting)
                for message in messages where message.delivery == nil {
                    counts.bytes += message.body.count
                    counts.messages += 1
                }
            }
        }
    }

    /// Removes messages that wait.
    func remove(where isGone: (any MessageDelivery) -> Bool) {
        let gone = mailbox.append { waiting in
            counts.withLock { $0.places.remove(from: &waiting, where: isGone) }
        }
        for message in gone { message.delivery?.messageWasDropped() }
    }

    func finish(_ end: Mailbox<Message>.Ending) {
        mailbox.finish(end)
    }

    /// Drops what waits.
    func discard() {
        let dropped = mailbox.append { waiting in
            defer { waiting = [] }
            return waiting
        }
        for message in dropped { message.delivery?.messageWasDropped() }
    }
}
