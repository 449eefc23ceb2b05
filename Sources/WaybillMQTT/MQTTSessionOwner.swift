import WireCore

/// The client identifier whose session the state belongs to (MQTT 5, 3.1.3-2): a value.
///
/// | CONNECT with | the session is |
/// | --- | --- |
/// | any identifier, before the first CONNACK | the same |
/// | the identifier of the last CONNACK | the same |
/// | another identifier, or none | another one |
package struct MQTTSessionOwner: Sendable {
    /// Nil before the first CONNACK.
    private var identifier: String?
    /// Whether the server has assigned the identifier (MQTT 5, 3.2.2.3.7).
    private var isAssigned = false
    /// The identifier of the last CONNECT.
    private var requested = ""

    /// - Parameter identifier: The identifier of a stored session; nil without one.
    package init(_ identifier: String? = nil) {
        self.identifier = identifier
    }

    /// The identifier that the server has assigned; nil if the client has chosen it.
    package var assigned: String? { isAssigned ? identifier : nil }

    /// Whether a CONNECT with an identifier asks for the same session.
    package func isSame(as other: String) -> Bool {
        guard let identifier else { return true }
        return !other.isEmpty && identifier.hasSameBytes(as: other)
    }

    /// Notes the identifier of a CONNECT, before its CONNACK.
    package mutating func noteRequested(_ identifier: String) { requested = identifier }

    /// Notes that the server has accepted the last CONNECT.
    ///
    /// - Parameter assigned: The identifier that CONNACK assigns; nil if the client has chosen it. One that was not asked
    ///   for changes nothing: the next CONNECT names the client's own again, and means the same session.
    package mutating func noteConnected(assigned: String?) {
        let assigned = requested.isEmpty ? assigned : nil
        let next = assigned ?? requested
        // A reconnection names the assigned identifier in its CONNECT.
        isAssigned = assigned != nil || (isAssigned && isSame(as: next))
        identifier = next
    }
}
