package import WireCore

/// The application messages that arrived one after the other in one read.
///
/// A message is a record of 32 bytes. All records share the memory of the read and the topic names, so that a message
/// costs neither an allocation nor a reference count until a listener is found for it.
package struct MQTTArrivals: Sendable {
    private struct Record: Sendable {
        /// The serial number of the receipt; 0 at QoS 0, which has none.
        let serial: UInt64
        /// The place of the payload in the memory.
        let offset: UInt32
        let count: UInt32
        /// The index of the topic.
        let topic: UInt32
        /// The subscription identifier that the server named; 0 for none, or when it is among the properties.
        let subscriptionIdentifier: UInt32
        let packetIdentifier: UInt16
        let qos: MQTTQoS
        let flags: Flags
    }

    private struct Flags: OptionSet, Sendable {
        let rawValue: UInt8
        static let isRetained = Flags(rawValue: 1)
        static let isDuplicate = Flags(rawValue: 2)
        static let hasProperties = Flags(rawValue: 4)
    }

    /// Neighbours with the same topic, subscription and quality of service, which go to the same listeners.
    ///
    /// A message with other properties is a run of its own.
    package struct Run: Sendable {
        package let topic: String
        package let isRetained: Bool
        /// The subscription identifiers that the server named.
        package let subscriptionIdentifiers: [UInt32]
        /// Whether the messages have other properties.
        package let hasProperties: Bool
        /// The indices of the messages.
        package let indices: Range<Int>
    }

    /// The memory of the read.
    private var memory = ByteSlice.empty
    private var topics: [String] = []
    /// The decoder's number of the last topic.
    private var lastTopicNumber = 0
    private var records: [Record] = []
    /// The properties of messages that have others than a subscription identifier, by index.
    private var properties: [Int: MQTTProperties] = [:]

    init() {}

    package var count: Int { records.count }

    package var isEmpty: Bool { records.isEmpty }

    // MARK: Adding

    /// Adds a message without properties of its own, which is still at the front of the buffer.
    ///
    /// - Parameters:
    ///   - publish: The message.
    ///   - decoder: Has its topic.
    ///   - receipt: Its receipt, if it must be acknowledged.
    ///   - buffer: The buffer that it was found in.
    mutating func append(
        _ publish: MQTTPlainPublish,
        _ decoder: borrowing MQTTPacketDecoder,
        _ receipt: MQTTDeliveryReceipt?,
        in buffer: ReceiveBuffer
    ) {
        if records.isEmpty { memory = buffer.filled }
        if topics.isEmpty || decoder.topicNumber != lastTopicNumber {
            topics.append(decoder.lastTopic)
            lastTopicNumber = decoder.topicNumber
        }
        var flags: Flags = publish.isRetained ? .isRetained : []
        if publish.isDuplicate { flags.insert(.isDuplicate) }
        records.append(
            Record(
                serial: receipt?.serial ?? 0,
                offset: UInt32(buffer.position + publish.payload.lowerBound),
                count: UInt32(publish.payload.count),
                topic: UInt32(topics.count - 1),
                subscriptionIdentifier: publish.subscriptionIdentifier,
                packetIdentifier: publish.packetIdentifier,
                qos: publish.qos,
                flags: flags
            )
        )
    }

    /// Adds a message with properties, whose payload is a slice of the buffer.
    mutating func append(
        _ publish: MQTTPublish,
        _ receipt: MQTTDeliveryReceipt?,
        in buffer: ReceiveBuffer
    ) {
        if records.isEmpty { memory = buffer.filled }
        if topics.last?.hasSameBytes(as: publish.topic) != true { topics.append(publish.topic) }
        // A number that no decoder has: the next topic is entered again.
        lastTopicNumber = -1
        var flags: Flags = publish.isRetained ? .isRetained : []
        if publish.isDuplicate { flags.insert(.isDuplicate) }
        // A message whose topic alias was replaced often has no other property.
        let identifier = publish.properties.onlySubscriptionIdentifier
        if identifier == nil {
            properties[records.count] = publish.properties
            flags.insert(.hasProperties)
        }
        records.append(
            Record(
                serial: receipt?.serial ?? 0,
                offset: UInt32(publish.payload.offset),
                count: UInt32(publish.payload.count),
                topic: UInt32(topics.count - 1),
                subscriptionIdentifier: identifier ?? 0,
                packetIdentifier: publish.packetIdentifier,
                qos: publish.qos,
                flags: flags
            )
        )
    }

    // MARK: Reading

    /// Calls `body` with each run, in order.
    package func forEachRun(_ body: (Run) -> Void) {
        var start = 0
        while start < records.count {
            let first = records[start]
            var end = start + 1
            if !first.flags.contains(.hasProperties) {
                while end < records.count, Self.areAlike(first, records[end]) { end += 1 }
            }
            body(
                Run(
                    topic: topics[Int(first.topic)],
                    isRetained: first.flags.contains(.isRetained),
                    subscriptionIdentifiers: first.subscriptionIdentifier == 0
                        ? properties[start]?.subscriptionIdentifiers ?? []
                        : [first.subscriptionIdentifier],
                    hasProperties: first.flags.contains(.hasProperties),
                    indices: start..<end
                )
            )
            start = end
        }
    }

    private static func areAlike(_ one: Record, _ other: Record) -> Bool {
        one.topic == other.topic && one.qos == other.qos
            && one.subscriptionIdentifier == other.subscriptionIdentifier
            && one.flags.symmetricDifference(other.flags).isSubset(of: .isDuplicate)
    }

    package func qos(at index: Int) -> MQTTQoS { records[index].qos }

    package func isDuplicate(at index: Int) -> Bool {
        records[index].flags.contains(.isDuplicate)
    }

    /// A copy of the payload of a message.
    package func payload(at index: Int, copiedBy copier: inout SliceCopier) -> ByteSlice {
        let place = Int(records[index].offset)..<Int(records[index].offset + records[index].count)
        return memory.withUnsafeBytes {
            copier.copy(UnsafeRawBufferPointer(rebasing: $0[place]))
        }
    }

    /// The payload of a message, which shares the memory of the read.
    private func payload(at index: Int) -> ByteSlice {
        memory.slice(at: Int(records[index].offset), count: Int(records[index].count))
    }

    /// The receipt of a message that must be acknowledged.
    package func receipt(at index: Int) -> MQTTDeliveryReceipt? {
        let record = records[index]
        guard record.qos != .atMostOnce else { return nil }
        return MQTTDeliveryReceipt(qos: record.qos, serial: record.serial)
    }

    /// The packet of a message.
    package func publish(at index: Int) -> MQTTPublish {
        let record = records[index]
        var properties = properties[index] ?? MQTTProperties()
        if record.subscriptionIdentifier != 0 {
            properties.subscriptionIdentifiers = [record.subscriptionIdentifier]
        }
        return MQTTPublish(
            topic: topics[Int(record.topic)],
            qos: record.qos,
            isRetained: record.flags.contains(.isRetained),
            isDuplicate: record.flags.contains(.isDuplicate),
            packetIdentifier: record.packetIdentifier,
            properties: properties,
            payload: payload(at: index)
        )
    }
}

/// A PUBLISH packet in a buffer, with no property but a subscription identifier.
struct MQTTPlainPublish {
    var qos = MQTTQoS.atMostOnce
    var isRetained = false
    var isDuplicate = false
    /// The packet identifier; zero at QoS 0.
    var packetIdentifier: UInt16 = 0
    /// The subscription identifier; zero for none.
    var subscriptionIdentifier: UInt32 = 0
    /// The place of the payload, counted from the front of the buffer.
    var payload = 0..<0
}
