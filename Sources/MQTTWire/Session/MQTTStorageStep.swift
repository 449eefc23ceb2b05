/// A step of a QoS 2 exchange that has to be stored before the packet that tells the server of it.
///
/// The core reports it as ``MQTTClientEvent/mustStore(_:)`` and sends the packet in
/// ``MQTTClientConnection/stored(_:at:)``. A process that ends before has not told the server, so that the next process
/// repeats the step.
package enum MQTTStorageStep: Hashable, Sendable {
    /// PUBREC has arrived for the stored message with this number; PUBREL follows.
    case released(number: UInt64, UInt16)
    /// The app has taken the received message with this identifier; PUBREC follows.
    case taken(UInt16)
    /// PUBREL has arrived for a received message; PUBCOMP follows, and the server may use the identifier again.
    case forgotten(UInt16)
    /// The server has lost the exchange of a received message with this identifier. No packet follows.
    case superseded(UInt16)
}
