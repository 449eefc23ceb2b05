/// Reason strings and user properties of PUBRECs that a later connection sends: a value.
///
/// They are optional (MQTT 5, 3.5.2.2.2 and 3.5.2.2.3), so those above the limit are left out.
package struct MQTTCarriedExplanations: Sendable {
    /// The greatest length of all of them together: 64 KiB.
    package static let byteLimit = 1 << 16

    private var explanations: [UInt16: MQTTProperties] = [:]
    package private(set) var byteCount = 0

    package init() {}

    /// Keeps the texts for a packet identifier, in place of earlier ones.
    package mutating func keep(_ explanation: MQTTProperties, for packetIdentifier: UInt16) {
        _ = take(packetIdentifier)
        guard !explanation.isEmpty, byteCount + explanation.byteCount <= Self.byteLimit else {
            return
        }
        explanations[packetIdentifier] = explanation
        byteCount += explanation.byteCount
    }

    /// Takes the texts of a packet identifier.
    package mutating func take(_ packetIdentifier: UInt16) -> MQTTProperties {
        guard !explanations.isEmpty,
            let explanation = explanations.removeValue(forKey: packetIdentifier)
        else { return MQTTProperties() }
        byteCount -= explanation.byteCount
        return explanation
    }
}
