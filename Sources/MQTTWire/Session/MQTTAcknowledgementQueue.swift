/// The acknowledgements that are owed to the peer, sent in the order of its messages.
///
/// Consumers may take messages in any order. PUBACK and PUBREC must be sent in the order in which the PUBLISH packets
/// arrived (MQTT 5, 4.6.0-2 and 4.6.0-3). An acknowledgement that is ready therefore waits for those before it. The same
/// holds for PUBREC and PUBREL packets that wait for a store (4.6.0-4).
package struct MQTTAcknowledgementQueue: Sendable {
    struct Entry {
        let packetIdentifier: UInt16
        var reasonCode: MQTTReasonCode?
    }

    /// Reason strings and user properties, by serial number; apart, because hardly any acknowledgement has them.
    private var explanations: [UInt64: MQTTProperties] = [:]
    private var entries: [Entry] = []
    private var head = 0
    /// The serial number of the first entry; smaller numbers belong to acknowledged messages and earlier connections.
    private(set) var firstSerial: UInt64 = 0

    package init() {}

    /// The number of owed acknowledgements.
    package var count: Int { entries.count - head }

    /// The serial number of the next message.
    var nextSerial: UInt64 { firstSerial + UInt64(entries.count) }

    /// Adds a message.
    ///
    /// - Returns: Its serial number, which names the message when it is taken.
    package mutating func append(_ packetIdentifier: UInt16) -> UInt64 {
        entries.append(Entry(packetIdentifier: packetIdentifier))
        return firstSerial + UInt64(entries.count - 1)
    }

    /// Notes that a message was taken, or refused with a reason.
    ///
    /// A second call for the same serial number does nothing.
    package mutating func settle(
        _ serial: UInt64,
        _ reasonCode: MQTTReasonCode,
        explaining properties: MQTTProperties = MQTTProperties()
    ) {
        guard let index = index(of: serial), entries[index].reasonCode == nil else { return }
        entries[index].reasonCode = reasonCode
        if !properties.isEmpty { explanations[serial] = properties }
    }

    /// Gives an acknowledgement that is not ready yet its reason string and user properties.
    mutating func explain(_ serial: UInt64, _ properties: MQTTProperties) {
        if !properties.isEmpty { explanations[serial] = properties }
    }

    private func index(of serial: UInt64) -> Int? {
        guard serial >= firstSerial, serial - firstSerial < UInt64(entries.count) else {
            return nil
        }
        let index = Int(serial - firstSerial)
        return index >= head ? index : nil
    }

    /// The packet identifier of an owed acknowledgement; nil for one that was sent, or that belongs to an earlier
    /// connection.
    func packetIdentifier(of serial: UInt64) -> UInt16? {
        index(of: serial).map { entries[$0].packetIdentifier }
    }

    /// Takes the reason string and the user properties of the acknowledgement that ``next()`` has just returned.
    mutating func takeExplanation() -> MQTTProperties {
        guard !explanations.isEmpty else { return MQTTProperties() }
        return explanations.removeValue(forKey: firstSerial + UInt64(head) - 1) ?? MQTTProperties()
    }

    /// Whether an acknowledgement of a message is owed.
    ///
    /// - Complexity: O(owed acknowledgements).
    func contains(_ packetIdentifier: UInt16) -> Bool {
        entries[head...].contains { $0.packetIdentifier == packetIdentifier }
    }

    /// Notes that the acknowledgement of a message is ready; does nothing if none is awaited.
    ///
    /// - Complexity: O(owed acknowledgements).
    mutating func settle(awaited packetIdentifier: UInt16, _ reasonCode: MQTTReasonCode) {
        let index = entries[head...].firstIndex {
            $0.packetIdentifier == packetIdentifier && $0.reasonCode == nil
        }
        if let index { entries[index].reasonCode = reasonCode }
    }

    /// Takes all entries, since the connection has ended; their serial numbers are never used again.
    mutating func takeAll() -> [(serial: UInt64, entry: Entry, explanation: MQTTProperties)] {
        let owed = entries.indices[head...].map { index in
            let serial = firstSerial + UInt64(index)
            return (serial, entries[index], explanations[serial] ?? MQTTProperties())
        }
        firstSerial += UInt64(entries.count)
        entries = []
        explanations = [:]
        head = 0
        return owed
    }

    /// Takes the next acknowledgement that may be sent now.
    package mutating func next() -> (packetIdentifier: UInt16, reasonCode: MQTTReasonCode)? {
        guard head < entries.count, let reasonCode = entries[head].reasonCode else { return nil }
        let identifier = entries[head].packetIdentifier
        head += 1
        if head == entries.count || head >= 1024 {
            firstSerial += UInt64(head)
            entries.removeFirst(head)
            head = 0
        }
        return (identifier, reasonCode)
    }
}
