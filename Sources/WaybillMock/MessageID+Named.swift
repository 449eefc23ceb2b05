public import Waybill

extension Message.ID {
    /// A name for a message that a test makes up, to be acknowledged through a ``MockTransport``.
    ///
    /// Messages that a transport delivers have names of its own.
    public static func named(_ name: String) -> Message.ID {
        Message.ID(name)
    }
}
