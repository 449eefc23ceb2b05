package import WireCore

/// The client side of an MQTT connection, 3.1.1 or 5: a value without socket and clock.
///
/// | state | event → next state |
/// | --- | --- |
/// | idle | ``connect(_:hasSessionState:resuming:at:)`` → connecting |
/// | connecting | CONNACK success → connected; refusal, violation, time → closed |
/// | connected | DISCONNECT either way, violation, silence, end of stream → closed |
/// | closed | none; arriving data is ignored |
package struct MQTTClientConnection: ProtocolCore {
    /// The settings of every connection of a client.
    package struct Configuration: Sendable {
        package var version = MQTTVersion.v5
        /// The longest packet to accept, in bytes; MQTT 5 servers are informed.
        package var maximumPacketSize = 1 << 20
        /// The number of outbound messages of QoS 1 and 2 in flight; a server may lower it.
        package var inflightWindow = 20
        /// The time limit for CONNACK.
        package var connectTimeout = Duration.seconds(10)
        /// The time limit for any other acknowledgement.
        package var acknowledgementTimeout = Duration.seconds(30)
        /// Whether messages outlive the connection.
        ///
        /// The end of the connection then abandons only the calls that wait for SUBACK or UNSUBACK. The rest is in
        /// ``MQTTClientConnection/takeSessionState()``.
        package var keepsSession = false
        /// Whether packets are reported as ``MQTTClientEvent/trace(_:)``.
        package var isTracing = false

        package init() {}
    }

    enum State: Sendable {
        case idle
        case connecting(deadline: WireInstant)
        case connected
        case closed
    }

    /// The parts of a CONNECT that matter after it was sent: neither password nor will.
    struct Asked: Sendable {
        let requestsResponseInformation: Bool
        let refusesProblemInformation: Bool
        let namesAuthentication: Bool

        init(_ packet: MQTTConnect) {
            let properties = packet.properties
            requestsResponseInformation = properties.requestResponseInformation == true
            refusesProblemInformation = properties.requestProblemInformation == false
            namesAuthentication = properties.authenticationMethod != nil
        }
    }

    package let configuration: Configuration

    var state = State.idle
    var decoder: MQTTPacketDecoder
    var writer: MQTTPacketWriter
    private var events: [MQTTClientEvent] = []
    /// The messages since the last event.
    var arrivals = MQTTArrivals()
    /// The number of events that were not taken, with each message of them counted.
    private var reportedCount = 0
    package internal(set) var hasMoreInput = false

    /// The parts of the CONNECT against which the server's answer is checked; nil before it.
    var asked: Asked?
    var hasSessionState = false
    /// Whether CONNECT was sent and no CONNACK arrived, also after the end.
    package internal(set) var isUnanswered = false
    /// The limits from the server's CONNACK.
    package internal(set) var limits = MQTTServerLimits()

    var keepAlive = MQTTKeepAlive(interval: .zero, at: .zero)
    /// Whether ``takeSessionState()`` has taken the state, so that nothing can be acknowledged or withdrawn here.
    package internal(set) var isSessionTaken = false
    var publisher: MQTTPublisher
    var receiver: MQTTReceiver
    /// Whether messages wait for ``resumeSession(at:)``.
    var isHoldingMessages = false

    package init(configuration: Configuration = Configuration()) {
        self.configuration = configuration
        decoder = MQTTPacketDecoder(
            version: configuration.version,
            role: .client,
            maximumPacketSize: configuration.maximumPacketSize
        )
        writer = MQTTPacketWriter(
            version: configuration.version,
            isTracing: configuration.isTracing
        )
        publisher = MQTTPublisher(window: configuration.inflightWindow)
        receiver = MQTTReceiver()
    }

    package var outboundByteCount: Int { writer.outbound.count }

    package var outbound: ByteWriter {
        get { writer.outbound }
        set { writer.outbound = newValue }
        _modify { yield &writer.outbound }
    }

    /// Whether messages can be sent.
    package var isConnected: Bool {
        if case .connected = state { true } else { false }
    }

    /// Whether PINGREQ is sent after silence; the server's interval replaces the client's.
    package var keepsAlive: Bool { keepAlive.interval > .zero }

    /// Notes that the driver has stopped or resumed reading.
    package mutating func holdReading(_ isHeld: Bool, at now: WireInstant) {
        keepAlive.holdReading(isHeld, at: now)
    }

    package var isFinished: Bool {
        if case .closed = state { true } else { false }
    }

    /// Whether CONNECT was sent, and the state of a session taken over with it.
    package var hasBegun: Bool { asked != nil }

    package var hasEvents: Bool { !events.isEmpty || !arrivals.isEmpty }

    /// The QoS 1 messages of earlier connections that the server sends again.
    package var repeatedSerials: MQTTRepeatedSerials { receiver.repeatedSerials }

    package var openCallCount: Int { publisher.inflight.count }

    /// The number of events, with each message counted.
    var eventCount: Int { reportedCount + arrivals.count }

    package mutating func takeEvents() -> [MQTTClientEvent] {
        endArrivals()
        reportedCount = 0
        defer { events = [] }
        return events
    }

    /// Adds an event behind the messages that arrived before it.
    mutating func report(_ event: MQTTClientEvent) {
        endArrivals()
        reportedCount += 1
        events.append(event)
    }

    /// Makes an event of the messages since the last one.
    mutating func endArrivals() {
        guard !arrivals.isEmpty else { return }
        reportedCount += arrivals.count
        events.append(.messages(arrivals))
        arrivals = MQTTArrivals()
    }

    // MARK: Time

    package var deadline: WireInstant? {
        switch state {
        case .connecting(let deadline): earlier(deadline, publisher.earliestDeadline)
        case .connected: earlier(keepAlive.deadline, publisher.earliestDeadline)
        case .idle, .closed: nil
        }
    }

    private func earlier(_ one: WireInstant?, _ other: WireInstant?) -> WireInstant? {
        guard let one, let other else { return one ?? other }
        return min(one, other)
    }

    package mutating func advance(to now: WireInstant) {
        switch state {
        case .connecting(let deadline):
            takeExpired(at: now)
            guard deadline <= now else { return }
            // If the server accepts the connection late, it must not publish the will.
            write(.disconnect(MQTTDisconnect()), at: now)
            close(.connectTimedOut)
        case .connected:
            switch keepAlive.due(at: now) {
            case .nothing: break
            case .ping: write(.pingreq, at: now)
            case .giveUp:
                // Only a server may send the code for a keep alive timeout (3.14.2.1).
                writeDisconnect(.unspecifiedError, at: now)
                return close(.keepAliveTimedOut)
            }
            takeExpired(at: now)
        case .idle, .closed: break
        }
    }

    private mutating func takeExpired(at now: WireInstant) {
        for call in publisher.takeExpired(at: now) { report(.timedOut(call)) }
    }

    // MARK: Writing

    /// Writes a packet that this side generates; a packet above the peer's limit is dropped.
    mutating func write(_ packet: MQTTPacket, at now: WireInstant) {
        try? writeChecked(packet, at: now)
    }

    mutating func writeChecked(
        _ packet: MQTTPacket,
        at now: WireInstant
    ) throws(MQTTSendError) {
        try writer.write(packet)
        noteSent(at: now)
    }

    /// Counts the packets written since the last call as activity; a queued message does not count (MQTT 5, 3.1.2-20).
    mutating func noteSent(at now: WireInstant) {
        if writer.takeHasWritten() { keepAlive.noteSent(at: now) }
        if configuration.isTracing {
            for item in writer.takeTraces() { report(.trace(item)) }
        }
    }

    // MARK: The end

    package mutating func receiveEndOfStream(at now: WireInstant) {
        guard !isFinished else { return }
        close(.endOfStream)
    }

    /// Ends the connection, and every call that does not belong to the session.
    mutating func close(_ closure: MQTTClosure) {
        guard !isFinished else { return }
        state = .closed
        if configuration.keepsSession {
            for item in publisher.suspend() { report(.abandoned(item)) }
            receiver.suspend()
        } else {
            for item in publisher.calls { report(.abandoned(item)) }
            publisher = MQTTPublisher(window: 0)
            receiver.loseSession()
        }
        report(.closed(closure))
    }

    /// Handles a violation by the peer: reports it where the version allows that, then closes (MQTT 5, 4.13.1).
    ///
    /// In 3.1.1 a DISCONNECT would mean a normal end and discard the will, so none is sent.
    mutating func violate(_ violation: MQTTViolation, at now: WireInstant) {
        writeDisconnect(violation.reasonCode, at: now)
        close(.violation(violation))
    }

    mutating func writeDisconnect(_ reasonCode: MQTTReasonCode, at now: WireInstant) {
        guard configuration.version == .v5 else { return }
        write(.disconnect(MQTTDisconnect(reasonCode: reasonCode)), at: now)
    }
}
