package import WireCore

extension ProtocolCore {
    /// Decodes everything in the buffer, as the driver does: a core may stop half-way several times.
    package mutating func receiveAll(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        repeat { receive(&buffer, at: now) } while hasMoreInput
    }
}
