package import WireCore

/// Decides when written bytes leave: at once, or gathered with what follows.
///
/// A write to a socket costs more than encoding fifty small messages. So a lone message leaves at
/// once (latency), while a sender that writes faster than the gathering time has its messages leave
/// together (throughput). What counts is the recent past:
///
/// | the flush before carried | flushes since the peer has spoken | then |
/// | --- | --- | --- |
/// | up to `conversationCount` messages | fewer than `turnCount` | at once: a conversation |
/// | up to `conversationCount`, longer ago than the gathering time | any | at once: a lone message |
/// | up to `conversationCount`, sooner | as many | gather: a burst begins |
/// | more, within `burstMemory` | any | gather: a burst goes on |
/// | more, longer ago | any | at once: the burst is over |
///
/// While more than `conversationCount` calls wait for the peer, many conversations share the connection, and what follows
/// closely is worth gathering: both counts are one then.
///
/// A conversation has a few messages to a turn: an acknowledgement of what has come, and the next message. Gathered,
/// each turn would take the gathering time, five times as long as the turn itself.
@usableFromInline
package struct FlushPacer: Sendable {
    /// How many bytes leave at once however young they are: 64 KiB, what one write takes well.
    @inlinable package static var fullBatch: Int { 65_536 }

    /// How many messages a flush of a conversation may carry: 4.
    package static let conversationCount = 4

    /// How many flushes a turn of a conversation may have: 2, one for an acknowledgement and one for what is said next.
    package static let turnCount = 2

    /// How long a burst is remembered: 1 ms.
    package static let burstMemory = Duration.nanoseconds(burstNanoseconds)

    /// How long after a flush the next write counts as part of a burst: 100 microseconds.
    package static let gatheringTime = Duration.nanoseconds(gatheringNanoseconds)

    private var lastFlush = WireInstant(nanoseconds: .min / 2)
    private var lastCount = 0
    private var flushesInTurn = 0

    package init() {}

    /// Whether the first message since the last flush should wait for others.
    /// - Parameters:
    ///   - calls: How many calls wait for the peer.
    ///   - now: The time.
    /// - Returns: False when it should leave at once.
    package func shouldGather(calls: Int, at now: WireInstant) -> Bool {
        let elapsed = now.nanoseconds - lastFlush.nanoseconds
        let areFew = calls <= Self.conversationCount
        if lastCount > (areFew ? Self.conversationCount : 1) {
            return elapsed < Self.burstNanoseconds
        }
        return flushesInTurn >= (areFew ? Self.turnCount : 1) && elapsed < Self.gatheringNanoseconds
    }

    // A duration counts attoseconds in 128 bits: dearer to divide than a message is to encode.
    private static var burstNanoseconds: Int64 { 1_000_000 }
    private static var gatheringNanoseconds: Int64 { 100_000 }

    /// The same, for now.
    @usableFromInline
    package func shouldGatherNow(calls: Int, by timers: any TimerSource) -> Bool {
        shouldGather(calls: calls, at: timers.preciseNow)
    }

    /// Notes that something has arrived.
    package mutating func noteReceived() {
        flushesInTurn = 0
    }

    /// Notes that what had gathered is leaving.
    package mutating func noteFlush(messages: Int, at now: WireInstant) {
        let isLone = now.nanoseconds - lastFlush.nanoseconds >= Self.gatheringNanoseconds
        flushesInTurn = isLone ? 1 : min(flushesInTurn + 1, Self.turnCount)
        lastFlush = now
        lastCount = messages
    }
}
