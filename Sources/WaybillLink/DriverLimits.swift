/// The limits of every driver.
@usableFromInline
enum DriverLimits {
    /// Above this number of unsent bytes, senders wait: 1 MiB.
    @inlinable static var highWaterMark: Int { 1 << 20 }

    /// Below this number of unsent bytes, waiting senders continue: 256 KiB.
    static var lowWaterMark: Int { 1 << 18 }

    /// The time for the peer to read the last bytes after the core has ended: 5 seconds.
    static var closingTimeout: Duration { .seconds(5) }

    /// The number of reads or writes of one call before other streams get their turn: 4.
    static var roundsInTurn: Int { 4 }
}

/// When bytes are sent.
@usableFromInline
package enum SendUrgency: Sendable {
    /// At once.
    case immediate
    /// When the pacer decides.
    case paced
}
