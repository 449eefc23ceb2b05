/// The QoS 1 messages of earlier connections that the server sends again, by serial number.
///
/// | connection | unacknowledged messages of earlier connections |
/// | --- | --- |
/// | session present | the server sends them again (MQTT 5, 4.4.0-1) |
/// | session lost | they do not come again |
package struct MQTTRepeatedSerials: Sendable {
    /// The number of ranges that are kept: one for each lost session.
    private static let limit = 8

    /// The serial number of the first message of the server's session.
    private var sessionStart: UInt64 = 0
    private var ranges: [Range<UInt64>] = []

    package init() {}

    /// Whether the server sends a message again.
    package func contains(_ receipt: MQTTDeliveryReceipt) -> Bool {
        receipt.qos == .atLeastOnce && contains(receipt.serial)
    }

    func contains(_ serial: UInt64) -> Bool { ranges.contains { $0.contains(serial) } }

    /// Notes a connection that continues the session.
    ///
    /// - Parameter next: The serial number of its first message.
    mutating func resumeSession(before next: UInt64) {
        guard sessionStart < next else { return }
        if ranges.last?.lowerBound == sessionStart { ranges.removeLast() }
        ranges.append(sessionStart..<next)
        if ranges.count > Self.limit { ranges.removeFirst() }
    }

    /// Notes that the server has lost the session.
    ///
    /// - Parameter next: The serial number of the next message.
    mutating func loseSession(before next: UInt64) { sessionStart = next }
}
