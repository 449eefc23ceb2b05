/// Decides before which reads a socket is asked to acknowledge at once.
///
/// After a write the kernel takes the connection for a conversation: it delays an acknowledgement by 40 ms, so that
/// it can ride with the answer. A peer that gathers small writes (Nagle's algorithm, RFC 896) holds its second write
/// until the first is acknowledged, so both sides wait for each other. Asking for acknowledgements at once, with the
/// first read after a write, ends that. It costs a system call and a packet, hence it is done only where it helps:
///
/// | what happens | then |
/// | --- | --- |
/// | reads without a write between | the kernel acknowledges as it is; no call |
/// | two reads after a write | the peer sends in pieces: ask after each write again |
/// | `patience` turns of one read each | the peer does not send in pieces: ask no longer |
package struct QuickAcknowledgements: Sendable {
    /// How many turns of one read each show that the peer sends no pieces: 8.
    package static let patience = 8

    private var hasWritten = false
    /// How many turns in a row had one read.
    private var turnsOfOneRead = 0

    package init() {}

    /// Notes that bytes have left.
    package mutating func noteWrite() {
        hasWritten = true
    }

    /// Notes that a read follows.
    /// - Returns: Whether to ask for acknowledgements at once.
    package mutating func noteRead() -> Bool {
        guard hasWritten else {
            let hadStopped = turnsOfOneRead > Self.patience
            turnsOfOneRead = 0
            return hadStopped
        }
        hasWritten = false
        if turnsOfOneRead <= Self.patience { turnsOfOneRead += 1 }
        return turnsOfOneRead <= Self.patience
    }
}
