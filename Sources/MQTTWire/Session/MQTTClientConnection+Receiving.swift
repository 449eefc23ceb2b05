package import WireCore

extension MQTTClientConnection {
    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        keepAlive.noteReceived(at: now)
        hasMoreInput = false
        // Its messages are in the memory of another read.
        endArrivals()
        let limit = eventCount + ReceiveTurn.maximumEventCount
        while !isFinished {
            guard eventCount < limit else {
                hasMoreInput = true
                return
            }
            let waiting = buffer.count
            do {
                if isConnected, !configuration.isTracing,
                    let (publish, byteCount) = decoder.nextPlainPublish(buffer)
                {
                    try handle(publish, in: buffer, at: now)
                    buffer.consume(byteCount)
                    continue
                }
                guard let packet = try decoder.next(&buffer) else { return }
                if configuration.isTracing {
                    let byteCount = waiting - buffer.count
                    writer.noteTrace(of: packet, byteCount: byteCount, isOutbound: false)
                    for trace in writer.takeTraces() { report(.trace(trace)) }
                }
                try handle(packet, in: buffer, at: now)
            } catch {
                violate(error, at: now)
            }
        }
        buffer.removeAll()
    }

    private mutating func handle(
        _ packet: MQTTPacket,
        in buffer: ReceiveBuffer,
        at now: WireInstant
    ) throws(MQTTViolation) {
        guard case .connected = state else { return try handleFirst(packet, at: now) }
        switch packet {
        case .publish(let publish): try handlePublish(publish, in: buffer, at: now)
        case .puback(let puback): try handleAcknowledgement(puback, isComplete: false, at: now)
        case .pubrec(let pubrec): try handlePubrec(pubrec, at: now)
        case .pubrel(let pubrel): try handlePubrel(pubrel, at: now)
        case .pubcomp(let pubcomp): try handleAcknowledgement(pubcomp, isComplete: true, at: now)
        case .suback(let suback): try handleSuback(suback, at: now)
        case .unsuback(let unsuback): try handleUnsuback(unsuback, at: now)
        case .pingresp: keepAlive.notePingResponse()
        case .disconnect(let disconnect):
            // Only the client may set the interval (MQTT 5, 3.14.2-2).
            guard disconnect.properties.sessionExpiryInterval == nil else {
                throw .propertyNotAllowed(.disconnect)
            }
            close(.disconnectedByServer(disconnect.reasonCode, disconnect.properties))
        case .connack: throw .secondConnack
        case .auth: throw .unexpectedAuthentication
        case .connect, .subscribe, .unsubscribe, .pingreq: throw .unexpectedPacket(packet.kind)
        }
    }

    // MARK: CONNACK

    private mutating func handleFirst(
        _ packet: MQTTPacket,
        at now: WireInstant
    ) throws(MQTTViolation) {
        isUnanswered = false
        guard case .connack(let connack) = packet else {
            // The CONNECT did not request enhanced authentication (MQTT 5, 4.12.0-6).
            if case .auth = packet { throw .unexpectedAuthentication }
            throw .packetBeforeConnack(packet.kind)
        }
        try check(connack)
        guard !connack.reasonCode.isFailure else {
            return close(.refused(connack.reasonCode, connack.properties))
        }
        limits = MQTTServerLimits(connack, version: configuration.version)
        guard limits.maximumPacketSize >= MQTTServerLimits.smallestPacketSize else {
            writer.maximumPacketSize = limits.maximumPacketSize
            writeDisconnect(.packetTooLarge, at: now)
            return close(.packetSizeTooSmall(limits.maximumPacketSize))
        }
        writer.maximumPacketSize = limits.maximumPacketSize
        if let seconds = connack.properties.serverKeepAlive {
            keepAlive.interval = .seconds(Int64(seconds))
        }
        beginSession(isPresent: connack.sessionPresent)
        state = .connected
        report(.connected(connack))
    }

    private func check(_ connack: MQTTConnack) throws(MQTTViolation) {
        // A session present although the client expects none, or together with a refusal (MQTT 5, 3.2.2-4, 3.2.2-6).
        guard !connack.sessionPresent || (hasSessionState && !connack.reasonCode.isFailure) else {
            throw .unexpectedSessionPresent
        }
        guard
            asked?.requestsResponseInformation == true
                || connack.properties.responseInformation == nil
        else { throw .unrequestedResponseInformation }
        guard asked?.namesAuthentication == true || connack.properties.authenticationMethod == nil
        else { throw .unexpectedAuthentication }
    }

    /// With Request Problem Information 0 only PUBLISH, CONNACK and DISCONNECT may carry explanations (MQTT 5,
    /// 3.1.2-29).
    private func checkProblemInformation(_ properties: MQTTProperties) throws(MQTTViolation) {
        guard !properties.isEmpty, asked?.refusesProblemInformation == true else {
            return
        }
        guard properties.reasonString == nil, properties.userProperties.isEmpty else {
            throw .unrequestedProblemInformation
        }
    }

    // MARK: Inbound messages

    private mutating func handle(
        _ publish: MQTTPlainPublish,
        in buffer: ReceiveBuffer,
        at now: WireInstant
    ) throws(MQTTViolation) {
        let arrival = try receive(
            publish.qos,
            publish.packetIdentifier,
            isDuplicate: publish.isDuplicate,
            at: now
        )
        guard case .deliver(let receipt) = arrival else { return }
        arrivals.append(publish, decoder, receipt, in: buffer)
    }

    private mutating func handlePublish(
        _ publish: MQTTPublish,
        in buffer: ReceiveBuffer,
        at now: WireInstant
    ) throws(MQTTViolation) {
        // The client's CONNECT allows no topic alias, because it sets no maximum (MQTT 5, 3.1.2-27).
        if !publish.properties.isEmpty, publish.properties.topicAlias != nil {
            throw .topicAliasInvalid
        }
        let arrival = try receive(
            publish.qos,
            publish.packetIdentifier,
            isDuplicate: publish.isDuplicate,
            at: now
        )
        guard case .deliver(let receipt) = arrival else { return }
        arrivals.append(publish, receipt, in: buffer)
    }

    private mutating func receive(
        _ qos: MQTTQoS,
        _ identifier: UInt16,
        isDuplicate: Bool,
        at now: WireInstant
    ) throws(MQTTViolation) -> MQTTReceiver.Arrival {
        guard qos != .atMostOnce else { return .deliver(nil) }
        defer { noteSent(at: now) }
        return try receiver.receive(qos, identifier, isDuplicate: isDuplicate, to: &writer)
    }

    private mutating func handlePubrel(
        _ pubrel: MQTTAcknowledgement,
        at now: WireInstant
    ) throws(MQTTViolation) {
        try checkProblemInformation(pubrel.properties)
        receiver.receivePubrel(pubrel, to: &writer)
        noteSent(at: now)
    }

    // MARK: Acknowledgements

    private mutating func handleAcknowledgement(
        _ acknowledgement: MQTTAcknowledgement,
        isComplete: Bool,
        at now: WireInstant
    ) throws(MQTTViolation) {
        try checkProblemInformation(acknowledgement.properties)
        end(
            publisher.receive(acknowledgement, isComplete: isComplete, to: &writer),
            at: now
        )
    }

    private mutating func handlePubrec(
        _ pubrec: MQTTAcknowledgement,
        at now: WireInstant
    ) throws(MQTTViolation) {
        try checkProblemInformation(pubrec.properties)
        end(publisher.receivePubrec(pubrec, to: &writer), at: now)
    }

    private mutating func end(_ outcome: MQTTPublisher.Outcome?, at now: WireInstant) {
        noteSent(at: now)
        guard let outcome, let call = outcome.call else { return }
        let acknowledgement = outcome.acknowledgement
        report(.published(call, acknowledgement.reasonCode, acknowledgement.properties))
    }

    private mutating func handleSuback(
        _ suback: MQTTSuback,
        at now: WireInstant
    ) throws(MQTTViolation) {
        try checkProblemInformation(suback.properties)
        guard
            case .subscribe(let count) = publisher.inflight.entry(suback.packetIdentifier)?.exchange
        else {
            return
        }
        guard suback.reasonCodes.count == count else { throw .reasonCodeCountWrong(.suback) }
        let entry = publisher.endRequest(suback.packetIdentifier, to: &writer)
        noteSent(at: now)
        if let call = entry?.call {
            report(.subscribed(call, suback, hasBacklog: receiver.hasBacklog))
        }
    }

    private mutating func handleUnsuback(
        _ unsuback: MQTTUnsuback,
        at now: WireInstant
    ) throws(MQTTViolation) {
        try checkProblemInformation(unsuback.properties)
        guard
            case .unsubscribe(let count) = publisher.inflight.entry(unsuback.packetIdentifier)?
                .exchange
        else { return }
        guard configuration.version == .v3_1_1 || unsuback.reasonCodes.count == count else {
            throw .reasonCodeCountWrong(.unsuback)
        }
        let entry = publisher.endRequest(unsuback.packetIdentifier, to: &writer)
        noteSent(at: now)
        if let call = entry?.call {
            report(.unsubscribed(call, unsuback))
        }
    }
}
