package import WireCore

/// The exchanges of a client's connection in both directions, within the limits of the server.
///
/// | state | event → next state |
/// | --- | --- |
/// | closed | CONNACK → open, or while carried messages wait to be resent → holding; ``noteOtherClient()`` → closed for other |
/// | closed for other | CONNACK, which never continues the session → open |
/// | holding | ``resume(to:)`` → open; ``end(keepsSession:)`` → closed |
/// | open | ``restore(_:isReleased:call:)`` → holding; ``end(keepsSession:)`` → closed |
package struct MQTTClientExchanges: Sendable {
    // One value for all, since each connection stores it.
    private enum Progress: Sendable {
        /// Before CONNACK, and after the end.
        case closed
        /// Before CONNACK, with the session of another client identifier (MQTT 5, 3.1.3-2).
        case closedForOther
        /// Messages wait for ``resume(to:)``.
        case holding
        case open
    }

    /// The messages under way and the waiting calls.
    package var session = MQTTSessionState()
    /// The limits from the server's CONNACK.
    package private(set) var limits = MQTTServerLimits()
    /// The number of messages that this side puts in flight at most.
    private let inflightWindow: Int
    private var progress = Progress.closed
    /// Whether ``takeSession()`` has taken the state, so that nothing can be acknowledged or withdrawn here.
    package private(set) var isSessionTaken = false

    package init(inflightWindow: Int) {
        self.inflightWindow = inflightWindow
    }

    // MARK: From connection to connection

    /// Notes that the session belongs to another client identifier than that of the connection, before CONNACK.
    package mutating func noteOtherClient() { progress = .closedForOther }

    /// Applies CONNACK, and opens the window unless carried messages must be resent first.
    ///
    /// - Returns: The calls that waited for the end of an exchange that the server has lost with its session.
    package mutating func begin(
        _ limits: MQTTServerLimits,
        sessionPresent: Bool
    ) -> [any MQTTCall] {
        self.limits = limits
        var lost: [any MQTTCall] = []
        if sessionPresent, progress != .closedForOther {
            session.receiver.resumeSession()
        } else {
            session.publisher.loseSession()
            lost = session.receiver.loseSession()
        }
        session.publisher.suspicion = ReplaySuspicion()
        progress = session.publisher.isIdle ? .open : .holding
        if progress == .open { session.publisher.window = window }
        return lost
    }

    /// The number of messages that may be in flight on this connection.
    private var window: Int { min(inflightWindow, limits.receiveMaximum) }

    /// Adds a message of an earlier process, to be resent by ``resume(to:)``.
    mutating func restore(_ message: MQTTOutgoingMessage, isReleased: Bool, call: any MQTTCall) {
        session.restore(message, isReleased: isReleased, call: call)
        progress = .holding
    }

    /// Resends the messages that were in flight at the end of the last connection, and then the waiting ones.
    ///
    /// | message | server has the session | server has lost it |
    /// | --- | --- | --- |
    /// | QoS 1, sent | PUBLISH, DUP 1, same identifier | as a new message, unless its call has ended |
    /// | QoS 2, sent | PUBLISH, DUP 1, same identifier | dropped, or as a new message (``MQTTOutgoingMessage/isSentAnew``) |
    /// | QoS 2, PUBREC received | PUBREL | dropped |
    /// | never sent | sent in its turn | sent in its turn |
    ///
    /// - Returns: The dropped messages, each with its call.
    package mutating func resume(to writer: inout MQTTPacketWriter) -> [MQTTDroppedMessage] {
        guard progress == .holding else { return [] }
        progress = .open
        return session.publisher.resume(window: window, limits: limits, to: &writer)
    }

    /// Ends the connection.
    ///
    /// - Parameter keepsSession: Whether the messages continue on another connection.
    /// - Returns: The calls that end with this one.
    package mutating func end(keepsSession: Bool) -> [any MQTTCall] {
        progress = .closed
        if keepsSession { return session.suspend() }
        defer { session.removeAll() }
        return session.calls
    }

    /// Takes the state for the next connection.
    package mutating func takeSession() -> MQTTSessionState {
        isSessionTaken = true
        defer { session.removeAll() }
        return session
    }

    // MARK: Sending

    /// Checks a message against the limits, except for its length.
    package func check(_ publish: MQTTPublish) throws(MQTTSendError) {
        try limits.check(publish)
        guard !publish.properties.isEmpty else { return }
        guard !publish.properties.contains(.subscriptionIdentifier) else {
            throw .subscriptionIdentifierNotAllowed
        }
        // The writer alone knows the aliases of the connection.
        guard !publish.properties.contains(.topicAlias) else {
            throw .encoding(.propertyNotAllowed(.topicAlias))
        }
    }

    /// Sends SUBSCRIBE or UNSUBSCRIBE.
    ///
    /// - Throws: `MQTTSendError`; nothing was written then.
    package mutating func send(
        _ request: MQTTClientRequest,
        call: (any MQTTCall)?,
        deadline: WireInstant,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTSendError) {
        if case .subscribe(let subscriptions, _, _) = request {
            for subscription in subscriptions { try limits.check(subscription) }
        }
        let begun = session.publisher.inflight.begin(
            request.exchange,
            call: call,
            deadline: deadline
        )
        guard let identifier = begun else { throw .noPacketIdentifierLeft }
        do {
            try writer.write(request.packet(identifier, within: limits))
        } catch {
            session.publisher.inflight.end(identifier)
            throw error
        }
        session.publisher.suspicion.noteOther()
        if call != nil { session.publisher.noteDeadline(deadline) }
    }

    // MARK: Receiving

    /// Handles a packet that continues or ends an exchange.
    ///
    /// - Returns: The event for the call of an exchange that has ended.
    /// - Throws: `reasonCodeCountWrong`; `unexpectedPacket` for any other packet.
    package mutating func receive(
        _ packet: MQTTPacket,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTViolation) -> MQTTClientEvent? {
        switch packet {
        case .puback(let answer), .pubrec(let answer), .pubcomp(let answer):
            let mayWait = session.publisher.noteAcknowledged(answer.packetIdentifier)
            let event = try handle(packet, to: &writer)
            // A suspect of QoS 2 is under way until PUBCOMP, and the messages behind it need not wait for that.
            if mayWait { session.publisher.sendWaiting(to: &writer) }
            return event
        default: return try handle(packet, to: &writer)
        }
    }

    private mutating func handle(
        _ packet: MQTTPacket,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTViolation) -> MQTTClientEvent? {
        switch packet {
        case .puback(let puback):
            return published(session.publisher.receive(puback, isComplete: false, to: &writer))
        case .pubrec(let pubrec):
            guard !session.publisher.isStoring(pubrec) else { return nil }
            if let number = session.publisher.beginStep(pubrec) {
                return .mustStore(.released(number: number, pubrec.packetIdentifier))
            }
            return published(session.publisher.receivePubrec(pubrec, to: &writer))
        case .pubcomp(let pubcomp):
            return published(session.publisher.receive(pubcomp, isComplete: true, to: &writer))
        case .pubrel(let pubrel):
            if session.receiver.isStored(pubrel) {
                return .mustStore(.forgotten(pubrel.packetIdentifier))
            }
            session.receiver.receivePubrel(pubrel, to: &writer)
            return nil
        case .suback(let suback):
            guard case .subscribe(let count) = exchange(suback.packetIdentifier) else { return nil }
            guard suback.reasonCodes.count == count else { throw .reasonCodeCountWrong(.suback) }
            let call = session.publisher.endRequest(suback.packetIdentifier, to: &writer)?.call
            return call.map { .subscribed($0, suback, hasBacklog: session.receiver.hasBacklog) }
        case .unsuback(let unsuback):
            guard case .unsubscribe(let count) = exchange(unsuback.packetIdentifier) else {
                return nil
            }
            guard writer.version == .v3_1_1 || unsuback.reasonCodes.count == count else {
                throw .reasonCodeCountWrong(.unsuback)
            }
            let call = session.publisher.endRequest(unsuback.packetIdentifier, to: &writer)?.call
            return call.map { .unsubscribed($0, unsuback) }
        default: throw .unexpectedPacket(packet.kind)
        }
    }

    /// Goes on with a step that is stored.
    package mutating func stored(_ step: MQTTStorageStep, to writer: inout MQTTPacketWriter) {
        switch step {
        case .released(let number, let identifier):
            session.publisher.noteStored(number, identifier, to: &writer)
        case .taken(let identifier): session.receiver.noteStored(identifier, to: &writer)
        case .forgotten(let identifier):
            let pubrel = MQTTAcknowledgement(packetIdentifier: identifier)
            session.receiver.receivePubrel(pubrel, to: &writer)
        case .superseded: break
        }
    }

    /// Sends messages that waited behind a withdrawn one.
    package mutating func sendWaiting(to writer: inout MQTTPacketWriter) {
        session.publisher.sendWaiting(to: &writer)
    }

    private func exchange(_ packetIdentifier: UInt16) -> MQTTInflight.Exchange? {
        session.publisher.inflight.entry(packetIdentifier)?.exchange
    }

    private func published(_ outcome: MQTTPublisher.Outcome?) -> MQTTClientEvent? {
        guard let outcome, let call = outcome.call else { return nil }
        let acknowledgement = outcome.acknowledgement
        return .published(call, acknowledgement.reasonCode, acknowledgement.properties)
    }
}
