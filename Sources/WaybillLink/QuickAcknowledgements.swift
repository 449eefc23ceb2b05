/// Decides before which reads a socket is asked to acknowledge at once.
///
/// After a write the kernel treats the connection as a conversation: it delays an acknowledgement by up to 40 ms, to
/// send it together with the answer. A peer that gathers small writes (Nagle's algorithm, RFC 896) holds its second
/// write until the first is acknowledged, so both sides wait for each other. Requesting an immediate acknowledgement
/// with the first read after a write ends that. It costs a system call and a packet, so it is done only where it helps:
///
/// | observation | decision |
/// | --- | --- |
/// | reads without a write in between | the kernel acknowledges by itself; no call |
/// | two reads after a write | the peer sends in pieces: ask again after each write |
/// | `turnLimit` turns with one read each | the peer does not send in pieces: stop asking |
package struct QuickAcknowledgements: Sendable {
    /// The number of turns with one read after which asking stops: 8.
    package static let turnLimit = 8

    private var hasWritten = false
    /// The number of consecutive turns with one read.
    private var turnsOfOneRead = 0

    package init() {}

    /// Notes that bytes were sent.
    package mutating func noteWrite() {
        hasWritten = true
    }

    /// Notes that a read follows.
    ///
    /// - Returns: Whether to request acknowledgements at once.
    package mutating func noteRead() -> Bool {
        guard hasWritten else {
            let hadStopped = turnsOfOneRead > Self.turnLimit
            turnsOfOneRead = 0
            return hadStopped
        }
        hasWritten = false
        if turnsOfOneRead <= Self.turnLimit { turnsOfOneRead += 1 }
        return turnsOfOneRead <= Self.turnLimit
    }
}
