import WireCore

/// The packets of calls whose time limits begin when their last bytes are given to the socket.
///
/// | event | in the outbound buffer | in the buffer that is being written |
/// | --- | --- | --- |
/// | a packet is written | added | |
/// | the outbound buffer is given to the stream | none are left | those of the outbound buffer; their time begins |
/// | the rest of that buffer is given | | the same; their time begins anew |
/// | the connection ends | none | none |
struct MQTTDepartures: Sendable {
    private var written: [UInt16] = []
    private var leaving: [UInt16] = []

    mutating func noteWritten(_ identifier: UInt16) {
        written.append(identifier)
    }

    /// Notes that bytes are given to the stream.
    ///
    /// - Returns: The packets whose last bytes may be among them.
    mutating func noteGiven(isRest: Bool) -> [UInt16] {
        guard !isRest else { return leaving }
        swap(&leaving, &written)
        written.removeAll(keepingCapacity: true)
        return leaving
    }
}

extension MQTTPublisher {
    /// Begins the time limits of calls whose packets are given to the socket.
    mutating func noteGiven(isRest: Bool, until deadline: WireInstant) {
        for identifier in departures.noteGiven(isRest: isRest)
        where inflight.noteGiven(identifier, until: deadline) {
            noteDeadline(deadline)
        }
    }

    /// Notes that PUBREL was written.
    mutating func noteReleased(_ identifier: UInt16) {
        if inflight.isLasting(identifier) { departures.noteWritten(identifier) }
    }
}
