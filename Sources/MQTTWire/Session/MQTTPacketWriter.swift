package import WireCore

/// Writes packets into the outbound buffer within the peer's size limit, and traces them.
package struct MQTTPacketWriter: Sendable {
    package var version: MQTTVersion
    /// The longest packet that the peer accepts, in bytes.
    package var maximumPacketSize = Int.max
    /// The current time, for the rest of a message's expiry.
    var now = WireInstant.zero
    /// The bytes for the peer.
    package var outbound = ByteWriter()
    /// The topic aliases of the connection.
    package var aliases = MQTTSentAliases()
    /// Whether packets are recorded for ``takeTraces()``.
    package let isTracing: Bool
    private var traces: [MQTTTrace] = []
    private var hasWritten = false

    package init(version: MQTTVersion, isTracing: Bool) {
        self.version = version
        self.isTracing = isTracing
    }

    /// Writes a packet.
    ///
    /// - Throws: `MQTTSendError.encoding` or `.packetTooLarge`; nothing was written then.
    package mutating func write(_ packet: MQTTPacket) throws(MQTTSendError) {
        let start = outbound.count
        do {
            try packet.encode(into: &outbound, version: version)
        } catch {
            throw .encoding(error)
        }
        let byteCount = outbound.count - start
        guard byteCount <= maximumPacketSize else {
            outbound.truncate(to: start)
            throw .packetTooLarge(byteCount: byteCount, maximum: maximumPacketSize)
        }
        hasWritten = true
        if isTracing { noteTrace(of: packet, byteCount: byteCount, isOutbound: true) }
    }

    /// Writes AUTH, without Reason String and User Properties if it would otherwise exceed the peer's limit.
    ///
    /// - Throws: As ``write(_:)``.
    package mutating func write(_ auth: MQTTAuth) throws(MQTTSendError) {
        let attempts = auth.attempts
        for attempt in attempts.dropLast() where (try? write(attempt)) != nil { return }
        if let last = attempts.last { try write(last) }
    }

    /// Writes a message with its payload, which is copied once.
    ///
    /// - Throws: As ``write(_:)``.
    package mutating func write(
        _ publish: MQTTPublish,
        payload: some WireBytes
    ) throws(MQTTSendError) {
        guard aliases.isEmpty else { return try writeWithAlias(publish, payload: payload) }
        if maximumPacketSize < .max { try checkSize(of: publish, payload: payload) }
        try append(publish, payload: payload)
    }

    /// Writes a message that may name its topic by an alias.
    private mutating func writeWithAlias(
        _ publish: MQTTPublish,
        payload: some WireBytes
    ) throws(MQTTSendError) {
        // With its topic, because the message must also fit after a reconnection.
        try checkSize(of: publish, payload: payload)
        // A repetition has its topic, as the message of the earlier connection had.
        let naming = publish.isDuplicate ? .topic : aliases.naming(of: publish.topic)
        let (start, payloadByteCount) = (outbound.count, payload.wireByteCount)
        var named = publish
        switch naming {
        case .topic: return try append(publish, payload: payload)
        case .definition(let alias):
            named.add(alias)
            // The alias may make the packet too long.
            guard
                named.encodedSize(version: version, payloadByteCount: payloadByteCount)
                    <= min(maximumPacketSize, MQTTPublish.maximumPacketSize)
            else { return try append(publish, payload: payload) }
            try append(named, payload: payload)
            aliases.noteDefinition(of: alias, for: publish.topic)
        case .alias(let alias):
            named.add(alias)
            named.topic = ""
            try append(named, payload: payload, of: publish.topic)
        }
        aliases.savedByteCount +=
            publish.encodedSize(version: version, payloadByteCount: payloadByteCount)
            - (outbound.count - start)
    }

    /// Appends a message, and traces it with the topic that its alias stands for.
    @inline(__always)
    private mutating func append(
        _ publish: MQTTPublish,
        payload: some WireBytes,
        of topic: String? = nil
    ) throws(MQTTSendError) {
        let start = outbound.count
        do {
            try publish.encode(into: &outbound, version: version, payload: payload)
        } catch {
            throw .encoding(error)
        }
        hasWritten = true
        guard isTracing else { return }
        var shown = publish
        payload.withWireBytes { shown.payload = ByteSlice(copying: $0) }
        noteTrace(
            of: .publish(shown),
            topic: topic,
            byteCount: outbound.count - start,
            isOutbound: true
        )
    }

    /// Whether a packet was written since the last call.
    mutating func takeHasWritten() -> Bool {
        defer { hasWritten = false }
        return hasWritten
    }

    /// Checks whether the message could be written now, without writing it.
    ///
    /// - Throws: As ``write(_:)``.
    package func check(_ message: MQTTOutgoingMessage) throws(MQTTSendError) {
        var scratch = self
        scratch.outbound = ByteWriter()
        scratch.aliases = MQTTSentAliases()
        var publish = message.publish
        if publish.qos != .atMostOnce { publish.packetIdentifier = 1 }
        try scratch.checkSize(of: publish, payload: message.payload)
        try scratch.write(publish, payload: ByteSlice.empty)
    }

    private func checkSize(
        of publish: MQTTPublish,
        payload: some WireBytes
    ) throws(MQTTSendError) {
        let byteCount = publish.encodedSize(
            version: version,
            payloadByteCount: payload.wireByteCount
        )
        guard byteCount <= maximumPacketSize else {
            throw .packetTooLarge(byteCount: byteCount, maximum: maximumPacketSize)
        }
        guard byteCount <= MQTTPublish.maximumPacketSize else {
            throw .encoding(.packetTooLarge(byteCount: byteCount))
        }
    }

    /// Records a packet for ``takeTraces()`` while tracing is on.
    ///
    /// - Parameters:
    ///   - packet: The packet.
    ///   - topic: The topic that the alias of a PUBLISH stands for; nil for the topic of the packet.
    ///   - byteCount: Its length on the wire in bytes.
    ///   - isOutbound: Whether this side sent it.
    package mutating func noteTrace(
        of packet: MQTTPacket,
        topic: String? = nil,
        byteCount: Int,
        isOutbound: Bool
    ) {
        guard isTracing else { return }
        var payload = ByteSlice.empty
        if case .publish(let publish) = packet { payload = publish.payload }
        traces.append(
            MQTTTrace(
                isOutbound: isOutbound,
                kind: packet.kind,
                topic: topic ?? packet.topic,
                text: packet.description,
                byteCount: byteCount,
                payload: payload
            )
        )
    }

    /// Takes the recorded packets.
    package mutating func takeTraces() -> [MQTTTrace] {
        defer { traces = [] }
        return traces
    }
}

extension MQTTPublish {
    /// Adds an alias.
    fileprivate mutating func add(_ alias: MQTTSentAliases.Alias) {
        if properties.isEmpty {
            properties = alias.properties
        } else {
            properties.topicAlias = alias.number
        }
    }
}
