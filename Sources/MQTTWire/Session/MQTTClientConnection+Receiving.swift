package import WireCore

extension MQTTClientConnection {
    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        channel.keepAlive.noteReceived(at: now)
        channel.writer.now = now
        hasMoreInput = false
        // Its messages are in the memory of another read.
        channel.events.endArrivals()
        let limit = channel.events.count + ReceiveTurn.maximumEventCount
        while !isFinished {
            guard !channel.isVerifying else {
                hasMoreInput = buffer.count > 0
                return
            }
            guard channel.events.count < limit else {
                hasMoreInput = true
                return
            }
            let start = buffer.position
            var head: [UInt8]?
            do {
                if let (publish, byteCount) = channel.nextPlainPublish(buffer) {
                    hasProgress = true
                    try handle(publish, in: buffer, at: now)
                    buffer.consume(byteCount)
                } else if let packet = try channel.next(&buffer) {
                    try handle(packet, in: buffer, at: now)
                } else {
                    head = channel.decoder.skippedHead
                    guard let message = try channel.takeSkipped() else { return }
                    try handle(message, at: now)
                }
            } catch {
                channel.decoder.violationMark = mark(
                    of: head
                        ?? buffer.filled.slice(at: start, count: MQTTPacketDecoder.markLength).bytes
                )
                violate(error, at: now)
            }
        }
        buffer.removeAll()
    }

    /// The first 64 bytes of a packet, without DUP: the same when the server sends the packet again.
    ///
    /// Of a message that was skipped, they are those of its head, because its payload is gone.
    private func mark(of packet: [UInt8]) -> [UInt8] {
        var bytes = packet
        // What follows the packet is another one each time. A longer packet than this has a second byte above 127.
        if bytes.count > 1, bytes[1] < 62 { bytes = Array(bytes.prefix(2 + Int(bytes[1]))) }
        if let first = bytes.first, first >> 4 == MQTTPacketKind.publish.rawValue {
            bytes[0] = first & ~0x08
        }
        return bytes
    }

    /// Acknowledges a message that was skipped, so that it does not come again.
    private mutating func handle(
        _ message: MQTTSkippedMessage,
        at now: WireInstant
    ) throws(MQTTViolation) {
        hasProgress = true
        let (qos, isDuplicate) = (message.publish.qos, message.publish.isDuplicate)
        let identifier = message.publish.packetIdentifier
        guard case .deliver(let receipt) = try receive(qos, identifier, isDuplicate, at: now) else {
            return
        }
        channel.events.append(.skipped(message))
        guard let receipt else { return }
        acknowledge(receipt, configuration.version == .v5 ? .quotaExceeded : .success, at: now)
    }

    private mutating func handle(
        _ packet: MQTTPacket,
        in buffer: ReceiveBuffer,
        at now: WireInstant
    ) throws(MQTTViolation) {
        guard isConnected else {
            switch try channel.receiveFirst(packet, at: now) {
            case .accepted(let connack, let limits): begin(connack, limits)
            case .challenged(let properties): channel.events.append(.challenged(properties))
            case .mustVerify(let properties): channel.events.append(.mustVerify(properties))
            case .refused(let closure): close(closure)
            }
            return
        }
        switch packet {
        case .publish, .puback, .pubrec, .pubrel, .pubcomp, .suback, .unsuback, .pingresp:
            hasProgress = true
        default: break
        }
        switch packet {
        case .publish(let publish): try handle(publish, in: buffer, at: now)
        case .puback, .pubrec, .pubrel, .pubcomp, .suback, .unsuback:
            try channel.handshake.checkExplanation(packet)
            let event = try exchanges.receive(packet, to: &channel.writer)
            channel.noteSent(at: now)
            if let event { channel.events.append(event) }
            if case .pubrel = packet { reportTaken() }
        default:
            if let closure = try channel.receive(packet) { close(closure) }
        }
    }

    /// Begins the connection that the server has accepted and that needs no verification any more.
    mutating func begin(_ connack: MQTTConnackPacket, _ limits: MQTTServerLimits) {
        let lost = exchanges.begin(limits, sessionPresent: connack.sessionPresent)
        for call in lost { channel.events.append(.sessionLost(call)) }
        channel.events.append(.connected(connack))
        // Messages that were taken since CONNECT.
        reportTaken()
    }

    private mutating func handle(
        _ publish: MQTTPlainPublish,
        in buffer: ReceiveBuffer,
        at now: WireInstant
    ) throws(MQTTViolation) {
        let isDuplicate = publish.isDuplicate
        let arrival = try receive(publish.qos, publish.packetIdentifier, isDuplicate, at: now)
        guard case .deliver(let receipt) = arrival else { return }
        channel.events.append(publish, channel.decoder, receipt, in: buffer)
    }

    private mutating func handle(
        _ publish: MQTTPublish,
        in buffer: ReceiveBuffer,
        at now: WireInstant
    ) throws(MQTTViolation) {
        var publish = publish
        // Before a repetition is discarded, because it may define an alias, too.
        try channel.aliases.resolve(&publish)
        let isDuplicate = publish.isDuplicate
        let arrival = try receive(publish.qos, publish.packetIdentifier, isDuplicate, at: now)
        guard case .deliver(let receipt) = arrival else { return }
        channel.events.append(publish, receipt, in: buffer)
    }

    private mutating func receive(
        _ qos: MQTTQoS,
        _ identifier: UInt16,
        _ isDuplicate: Bool,
        at now: WireInstant
    ) throws(MQTTViolation) -> MQTTReceiver.Arrival {
        guard qos != .atMostOnce else { return .deliver(nil) }
        defer { channel.noteSent(at: now) }
        let arrival = try exchanges.session.receiver.receive(
            qos,
            identifier,
            isDuplicate: isDuplicate,
            to: &channel.writer
        )
        switch arrival {
        case .deliver: return arrival
        case .deliverAfterLoss(let receipt, let lost):
            for call in lost { channel.events.append(.sessionLost(call)) }
            reportTaken()
            return .deliver(receipt)
        case .repetition:
            reportTaken()
            return arrival
        }
    }
}
