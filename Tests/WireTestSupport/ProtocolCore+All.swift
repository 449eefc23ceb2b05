package import WireCore

extension ProtocolCore {
    /// Decodes all that the buffer holds, however often the core stops half-way, as its driver does.
    package mutating func receiveAll(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        repeat { receive(&buffer, at: now) } while hasMoreInput
    }
}
