package import WireCore

/// The client side of an MQTT connection, 3.1.1 or 5: a value without socket and clock.
///
/// It joins the packets (``MQTTClientChannel``) with the messages under way (``MQTTClientExchanges``).
///
/// | state | event → next state |
/// | --- | --- |
/// | idle | ``connect(_:hasSessionState:resuming:at:)`` → connecting |
/// | connecting | AUTH → connecting; CONNACK success → connected, or with an authentication method → verifying; refusal, violation, time → closed |
/// | verifying | ``acceptServer(at:)`` → connected; time → closed |
/// | connected | DISCONNECT either way, violation, silence, end of stream → closed |
/// | closed | none; arriving data is ignored |
package struct MQTTClientConnection: ProtocolCore {
    package var configuration: MQTTClientConfiguration { channel.configuration }

    var channel: MQTTClientChannel
    var exchanges: MQTTClientExchanges
    package internal(set) var hasMoreInput = false
    /// Whether the server has answered more than CONNECT: an acknowledgement, a message or PINGRESP.
    package internal(set) var hasProgress = false
    /// The first bytes of the packet that broke the protocol; empty while none has.
    package var violationMark: [UInt8] { channel.decoder.violationMark }

    package init(configuration: MQTTClientConfiguration = MQTTClientConfiguration()) {
        channel = MQTTClientChannel(configuration)
        exchanges = MQTTClientExchanges(inflightWindow: configuration.inflightWindow)
    }

    package var outboundByteCount: Int { channel.writer.outbound.count }

    package var outbound: ByteWriter {
        get { channel.writer.outbound }
        set { channel.writer.outbound = newValue }
        _modify { yield &channel.writer.outbound }
    }

    /// Whether messages can be sent.
    package var isConnected: Bool { channel.isConnected }

    package var isFinished: Bool { channel.isClosed }

    /// Whether CONNECT was sent, and the state of a session taken over with it.
    package var hasBegun: Bool { channel.handshake.hasBegun }

    /// Whether CONNECT was sent and nothing arrived, also after the end.
    package var isUnanswered: Bool { channel.handshake.isUnanswered }

    /// Whether the server may yet accept the CONNECT, also after the end.
    package var mayBeAcceptedLate: Bool { channel.handshake.mayBeAcceptedLate }

    /// Whether the server may have begun a session that this side knows nothing of, also after the end.
    package var isInDoubt: Bool { channel.handshake.isInDoubt }

    /// Whether PINGREQ is sent after silence; the server's interval replaces the client's.
    package var keepsAlive: Bool { channel.keepAlive.interval > .zero }

    /// What is known of the silence that the path bears; nil if pings follow the keep alive alone.
    package var keepAliveProbe: MQTTKeepAliveProbe? { channel.probe }

    /// Notes that the driver has stopped or resumed reading.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        channel.keepAlive.holdReading(isHeld, at: now)
    }

    /// The limits from the server's CONNACK.
    package var limits: MQTTServerLimits { exchanges.limits }

    /// The bytes that topic aliases have saved on this connection.
    package var savedByteCount: Int { channel.writer.aliases.savedByteCount }

    /// Whether outbound messages of QoS 1 and 2 are in flight or queued.
    package var hasMessagesUnderWay: Bool { !exchanges.session.publisher.isIdle }

    /// The QoS 1 messages of earlier connections that the server sends again.
    package var repeatedSerials: MQTTRepeatedSerials { exchanges.session.repeatedSerials }

    /// The number of packets that the server has not answered yet.
    package var unansweredCount: Int { exchanges.session.publisher.unansweredCount }

    package var openCallCount: Int { exchanges.session.publisher.inflight.count }

    package var hasEvents: Bool { !channel.events.isEmpty }

    package mutating func takeEvents() -> [MQTTClientEvent] { channel.events.takeAll() }

    // MARK: Time

    package var deadline: WireInstant? {
        guard !isFinished else { return nil }
        var deadline = channel.deadline ?? .never
        deadline = min(deadline, exchanges.session.earliestDeadline ?? .never)
        deadline = min(deadline, exchanges.session.publisher.suspicion.deadline ?? .never)
        return deadline == .never ? nil : deadline
    }

    package mutating func advance(to now: WireInstant) {
        guard !isFinished else { return }
        channel.writer.now = now
        // First, since a call that expires together with the connection is told of its end: a retry needs another one.
        if let closure = channel.advance(to: now) { return close(closure) }
        let cleared = exchanges.session.publisher.endIsolation(at: now, to: &channel.writer)
        if let cleared { channel.events.append(.cleared(cleared)) }
        channel.noteSent(at: now)
        let expired = exchanges.session.takeExpired(at: now)
        for call in expired { channel.events.append(.timedOut(call)) }
        if !expired.isEmpty { sendWaiting(at: now) }
    }

    package mutating func noteGiven(isRest: Bool, at now: WireInstant) {
        exchanges.session.publisher.suspicion.noteGiven(isRest: isRest, at: now)
        let deadline = now.advanced(by: configuration.acknowledgementTimeout)
        exchanges.session.publisher.noteGiven(isRest: isRest, until: deadline)
        if isRest { channel.keepAlive.noteProgress(at: now) }
    }

    package mutating func noteProgress(at now: WireInstant) {
        channel.keepAlive.noteProgress(at: now)
    }

    // MARK: The end

    /// Judges the messages that are sent again by the end of this connection.
    ///
    /// Call it once, before ``takeSessionState()``.
    package mutating func noteEnd(
        _ end: ReplaySuspicion.End,
        at now: WireInstant
    ) -> MQTTReplayFinding {
        exchanges.session.publisher.noteEnd(end, at: now)
    }

    package mutating func receiveEndOfStream(at now: WireInstant) {
        channel.noteEndOfStream(at: now)
        close(.endOfStream)
    }

    package mutating func receiveLoss(at now: WireInstant) {
        // A network that is gone says nothing about silence, unless a PINGREQ waits for its answer.
        close(.endOfStream)
    }

    /// Ends the connection, and every call that does not belong to the session.
    mutating func close(_ closure: MQTTClosure) {
        guard !isFinished else { return }
        let calls = exchanges.end(keepsSession: configuration.keepsSession)
        channel.close(closure, abandoning: calls)
    }

    /// Handles a violation by the server: reports it where the version allows that, then closes.
    mutating func violate(_ violation: MQTTViolation, at now: WireInstant) {
        channel.report(violation.reasonCode, at: now)
        close(.violation(violation))
    }

    /// Takes the state for the next connection, after this one has ended.
    ///
    /// The state of a session has one owner, which is the core until its end. Before the end the method returns an
    /// empty state and changes nothing. A core that does not keep its session
    /// (``MQTTClientConfiguration/keepsSession``) passes on only the numbers of receipts.
    package mutating func takeSessionState() -> MQTTSessionState {
        isFinished ? exchanges.takeSession() : MQTTSessionState()
    }

    /// Whether ``takeSessionState()`` has taken the state, so that nothing can be acknowledged or withdrawn here.
    package var isSessionTaken: Bool { exchanges.isSessionTaken }
}
