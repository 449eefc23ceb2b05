package import WireCore

/// Decides when written bytes leave: at once, or gathered with what follows.
///
/// A write to a socket costs more than encoding fifty small messages. So a lone message leaves at
/// once (latency), while a sender that writes faster than the gathering time has its messages leave
/// together (throughput). What counts is the recent past:
///
/// | since the last flush | the flush before that carried | then |
/// | --- | --- | --- |
/// | the peer has spoken | one message | at once: a conversation |
/// | silence, longer than the gathering time | one message | at once: a lone message |
/// | silence, shorter | one message | gather: a burst begins |
/// | anything, shorter than `burstMemory` | several | gather: a burst goes on |
/// | anything, longer | several | at once: the burst is over |
@usableFromInline
package struct FlushPacer: Sendable {
    /// How many bytes leave at once however young they are: 64 KiB, what one write takes well.
    @inlinable package static var fullBatch: Int { 65_536 }

    /// How long a burst is remembered: 1 ms.
    package static let burstMemory = Duration.nanoseconds(burstNanoseconds)

    /// How long after a flush the next write counts as part of a burst: 100 microseconds.
    package static let gatheringTime = Duration.nanoseconds(gatheringNanoseconds)

    private var lastFlush = WireInstant(nanoseconds: .min / 2)
    private var lastCount = 0
    private var peerHasSpoken = false

    package init() {}

    /// Whether the first message since the last flush should wait for others.
    package func shouldGather(at now: WireInstant) -> Bool {
        let elapsed = now.nanoseconds - lastFlush.nanoseconds
        if lastCount > 1 { return elapsed < Self.burstNanoseconds }
        return !peerHasSpoken && elapsed < Self.gatheringNanoseconds
    }

    // A duration counts attoseconds in 128 bits: dearer to divide than a message is to encode.
    private static var burstNanoseconds: Int64 { 1_000_000 }
    private static var gatheringNanoseconds: Int64 { 100_000 }

    /// The same, for now.
    @usableFromInline package var shouldGatherNow: Bool { shouldGather(at: SystemTime.now) }

    /// Notes that something has arrived.
    package mutating func noteReceived() {
        peerHasSpoken = true
    }

    /// Notes that what had gathered is leaving.
    package mutating func noteFlush(messages: Int, at now: WireInstant) {
        lastFlush = now
        lastCount = messages
        peerHasSpoken = false
    }
}
