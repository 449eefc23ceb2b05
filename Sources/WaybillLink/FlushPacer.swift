package import WireCore

/// Decides when written bytes are sent: at once, or gathered with later ones.
///
/// A write to a socket costs more than encoding fifty small messages. A single message is therefore sent at once
/// (latency). Messages that a sender writes faster than the gathering time are sent together (throughput). The decision
/// depends on the recent past:
///
/// | messages in the previous flush | flushes since the peer's last data | decision |
/// | --- | --- | --- |
/// | up to `conversationCount` | fewer than `turnCount` | at once: a conversation |
/// | up to `conversationCount`, longer ago than the gathering time | any | at once: a single message |
/// | up to `conversationCount`, more recent | `turnCount` or more | gather: a burst begins |
/// | more, within 1 ms | any | gather: a burst continues |
/// | more, longer ago | any | at once: the burst has ended |
///
/// While more than `conversationCount` calls wait for the peer, many conversations share the connection, and gathering
/// is worthwhile: both counts are then one.
///
/// A conversation has a few messages per turn: an acknowledgement of the last message, and the next message. If they
/// were gathered, each turn would take the gathering time, five times as long as the turn itself.
@usableFromInline
package struct FlushPacer: Sendable {
    /// The number of bytes that are sent at once in any case: 64 KiB, suitable for one write.
    @inlinable package static var fullBatch: Int { 65_536 }

    /// The number of messages in a flush of a conversation: 4.
    package static let conversationCount = 4

    /// The number of flushes in a turn of a conversation: 2, for an acknowledgement and the next message.
    package static let turnCount = 2

    /// The time after a flush in which a write counts as part of a burst: 100 microseconds.
    package static let gatheringTime = Duration.nanoseconds(gatheringNanoseconds)

    private var lastFlush = WireInstant(nanoseconds: .min / 2)
    private var lastCount = 0
    private var flushesInTurn = 0

    package init() {}

    /// Whether the first message since the last flush should wait for others.
    ///
    /// - Parameters:
    ///   - calls: The number of calls that wait for the peer.
    ///   - now: The current time.
    /// - Returns: False if it should be sent at once.
    package func shouldGather(calls: Int, at now: WireInstant) -> Bool {
        let elapsed = now.nanoseconds - lastFlush.nanoseconds
        let areFew = calls <= Self.conversationCount
        if lastCount > (areFew ? Self.conversationCount : 1) {
            return elapsed < Self.burstNanoseconds
        }
        return flushesInTurn >= (areFew ? Self.turnCount : 1) && elapsed < Self.gatheringNanoseconds
    }

    // How long a burst is remembered, and the gathering time.
    // In nanoseconds: a duration counts attoseconds in 128 bits, and dividing one takes longer than encoding a message.
    private static var burstNanoseconds: Int64 { 1_000_000 }
    private static var gatheringNanoseconds: Int64 { 100_000 }

    /// Does the same as ``shouldGather(calls:at:)`` with the current time.
    @usableFromInline
    package func shouldGatherNow(calls: Int, by timers: any TimerSource) -> Bool {
        shouldGather(calls: calls, at: timers.preciseNow)
    }

    /// Notes that data has arrived.
    package mutating func noteReceived() {
        flushesInTurn = 0
    }

    /// Notes that the gathered bytes are being sent.
    package mutating func noteFlush(messages: Int, at now: WireInstant) {
        let isLone = now.nanoseconds - lastFlush.nanoseconds >= Self.gatheringNanoseconds
        flushesInTurn = isLone ? 1 : min(flushesInTurn + 1, Self.turnCount)
        lastFlush = now
        lastCount = messages
    }
}
