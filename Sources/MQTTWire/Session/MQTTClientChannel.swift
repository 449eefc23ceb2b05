import WireCore

/// The packets of a client's connection in both directions, with its handshake and its keep alive.
///
/// | state | event → next state |
/// | --- | --- |
/// | idle | ``connect(_:expectsSession:at:)`` → connecting |
/// | connecting | ``receiveFirst(_:at:)`` accepts → connected; with an authentication method → verifying |
/// | verifying | ``acceptServer()`` → connected |
/// | connected | ``close(_:abandoning:)`` → closed, as in each state before |
/// | closed | none |
struct MQTTClientChannel: Sendable {
    /// The server's answer to CONNECT.
    enum Answer: Sendable {
        case accepted(MQTTConnackPacket, MQTTServerLimits)
        /// The server asks for the next data of the authentication.
        case challenged(MQTTProperties)
        /// The server has accepted, and this side has to verify the server.
        case mustVerify(MQTTProperties)
        case refused(MQTTClosure)
    }

    private enum State: Sendable {
        case idle
        case connecting(deadline: WireInstant)
        // Out of line, because few connections have to verify their server.
        indirect case verifying(MQTTConnackPacket, MQTTServerLimits, deadline: WireInstant)
        case connected
        case closed
    }

    let configuration: MQTTClientConfiguration
    private var state = State.idle
    private(set) var handshake = MQTTClientHandshake()
    /// The authentication of a CONNECT that has named a method; nil without one.
    private var usedAuthentication: Shared<MQTTClientAuthentication>?
    private var authentication: MQTTClientAuthentication {
        get { usedAuthentication?.value ?? MQTTClientAuthentication() }
        set { usedAuthentication = newValue.isUsed ? Shared(newValue) : nil }
    }
    var keepAlive = MQTTKeepAlive(interval: .zero, at: .zero)
    /// What is known of the silence that the path bears.
    var probe: MQTTKeepAliveProbe? { learned?.value }
    private var learned: Shared<MQTTKeepAliveProbe>?
    /// The keep alive that the server expects, which bounds the interval of pings.
    private var announcedKeepAlive = Duration.zero
    var decoder: MQTTPacketDecoder
    var writer: MQTTPacketWriter
    var events = MQTTClientEventQueue()
    /// The topic aliases of the server.
    var aliases = MQTTReceivedAliases()

    init(_ configuration: MQTTClientConfiguration) {
        self.configuration = configuration
        learned = configuration.keepAliveProbe.map { Shared($0) }
        decoder = MQTTPacketDecoder(
            version: configuration.version,
            role: .client,
            maximumPacketSize: configuration.maximumPacketSize
        )
        writer = MQTTPacketWriter(
            version: configuration.version,
            isTracing: configuration.isTracing
        )
    }

    var isConnected: Bool {
        if case .connected = state { true } else { false }
    }

    /// Whether this side has to verify the server before the connection begins.
    var isVerifying: Bool {
        if case .verifying = state { true } else { false }
    }

    var isClosed: Bool {
        if case .closed = state { true } else { false }
    }

    // MARK: Sending

    /// Sends CONNECT.
    ///
    /// - Throws: `MQTTSendError`; nothing was written then.
    mutating func connect(
        _ packet: MQTTConnect,
        expectsSession: Bool,
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard case .idle = state else { throw .notConnected }
        try write(.connect(packet), at: now)
        handshake = MQTTClientHandshake(packet, expectsSession: expectsSession)
        authentication = MQTTClientAuthentication(method: packet.properties.authenticationMethod)
        announcedKeepAlive = .seconds(Int64(packet.keepAlive))
        keepAlive = MQTTKeepAlive(interval: pingInterval, at: now)
        aliases = MQTTReceivedAliases(maximum: packet.properties.topicAliasMaximum ?? 0)
        state = .connecting(deadline: now.advanced(by: configuration.connectTimeout))
    }

    /// Sends the next data of an authentication.
    ///
    /// - Throws: `MQTTSendError`; nothing was written then.
    mutating func authenticate(
        _ data: [UInt8]?,
        explaining explanation: MQTTProperties,
        at now: WireInstant
    ) throws(MQTTSendError) {
        var next = authentication
        try writer.write(next.answer(data, explaining: explanation))
        authentication = next
        noteSent(at: now)
    }

    /// Begins a re-authentication.
    ///
    /// - Throws: `MQTTSendError`; nothing was written then.
    mutating func reauthenticate(
        _ data: [UInt8]?,
        explaining explanation: MQTTProperties,
        until deadline: WireInstant,
        at now: WireInstant
    ) throws(MQTTSendError) {
        guard isConnected else { throw .notConnected }
        var next = authentication
        try writer.write(next.reauthenticate(data, explaining: explanation, until: deadline))
        authentication = next
        noteSent(at: now)
    }

    private mutating func write(
        _ packet: MQTTPacket,
        at now: WireInstant
    ) throws(MQTTSendError) {
        try writer.write(packet)
        noteSent(at: now)
    }

    /// Counts the packets written since the last call as activity; a queued message does not count (MQTT 5, 3.1.2-20).
    mutating func noteSent(at now: WireInstant) {
        if writer.takeHasWritten() { keepAlive.noteSent(at: now) }
        takeTraces()
    }

    private mutating func takeTraces() {
        guard configuration.isTracing else { return }
        for trace in writer.takeTraces() { events.append(.trace(trace)) }
    }

    /// Sends DISCONNECT after CONNECT, without texts if the packet would exceed the server's limit.
    mutating func disconnect(_ packet: MQTTDisconnect, at now: WireInstant) {
        guard handshake.hasBegun, !isClosed else { return }
        for attempt in packet.attempts where (try? write(attempt, at: now)) != nil { return }
    }

    /// Reports an error to the server where the version allows that (MQTT 5, 4.13.1).
    ///
    /// In 3.1.1 a DISCONNECT would mean a normal end and discard the will, so none is sent.
    mutating func report(_ reasonCode: MQTTReasonCode, at now: WireInstant) {
        guard configuration.version == .v5, handshake.hasBegun else { return }
        try? write(.disconnect(MQTTDisconnect(reasonCode: reasonCode)), at: now)
    }

    // MARK: Receiving

    /// Takes a message without properties of its own, which stays at the front of the buffer.
    mutating func nextPlainPublish(_ buffer: ReceiveBuffer) -> (MQTTPlainPublish, byteCount: Int)? {
        guard isConnected, !configuration.isTracing else { return nil }
        return decoder.nextPlainPublish(buffer)
    }

    /// Takes the next packet.
    ///
    /// - Returns: The packet, or nil when more bytes are needed.
    mutating func next(_ buffer: inout ReceiveBuffer) throws(MQTTViolation) -> MQTTPacket? {
        let waiting = buffer.count
        guard let packet = try decoder.next(&buffer) else { return nil }
        let byteCount = waiting - buffer.count
        noteReceived(packet, byteCount: byteCount)
        return packet
    }

    private mutating func noteReceived(_ packet: MQTTPacket, byteCount: Int) {
        guard configuration.isTracing else { return }
        // Traced before the alias is resolved, so that a violation comes after its packet.
        let topic = aliases.topic(of: packet)
        writer.noteTrace(of: packet, topic: topic, byteCount: byteCount, isOutbound: false)
        takeTraces()
    }

    /// Takes the message that ``next(_:)`` has skipped, with its topic.
    mutating func takeSkipped() throws(MQTTViolation) -> MQTTSkippedMessage? {
        guard var message = decoder.takeSkipped() else { return nil }
        guard isConnected else { throw .packetBeforeConnack(.publish) }
        let packet = MQTTPacket.publish(message.publish)
        noteReceived(packet, byteCount: message.byteCount)
        try aliases.resolve(&message.publish)
        return message
    }

    /// Handles the first packet of the server.
    mutating func receiveFirst(
        _ packet: MQTTPacket,
        at now: WireInstant
    ) throws(MQTTViolation) -> Answer {
        if case .auth(let auth) = packet, authentication.isUsed {
            handshake.noteAuthentication()
            try handshake.checkExplanation(packet)
            guard case .challenge(let properties) = try authentication.receive(auth) else {
                throw .unexpectedAuthentication
            }
            return .challenged(properties)
        }
        let connack = try handshake.receive(packet)
        guard !connack.reasonCode.isFailure else {
            return .refused(.refused(connack.reasonCode, connack.properties))
        }
        try authentication.receive(connack)
        let limits = MQTTServerLimits(connack, version: configuration.version)
        writer.maximumPacketSize = limits.maximumPacketSize
        if configuration.usesTopicAliases {
            writer.aliases = MQTTSentAliases(maximum: limits.topicAliasMaximum)
        }
        guard limits.maximumPacketSize >= MQTTServerLimits.smallestPacketSize else {
            report(.packetTooLarge, at: now)
            return .refused(.packetSizeTooSmall(limits.maximumPacketSize))
        }
        if let seconds = connack.properties.serverKeepAlive {
            announcedKeepAlive = .seconds(Int64(seconds))
            keepAlive.interval = pingInterval
        }
        guard case .connecting(let deadline) = state, authentication.isUsed else {
            noteConnected()
            return .accepted(connack, limits)
        }
        state = .verifying(connack, limits, deadline: deadline)
        return .mustVerify(connack.properties)
    }

    /// Begins the connection, after this side has verified the server.
    ///
    /// - Returns: The CONNACK and the limits of the server; nil if no verification is due.
    mutating func acceptServer() -> (MQTTConnackPacket, MQTTServerLimits)? {
        guard case .verifying(let connack, let limits, _) = state else { return nil }
        noteConnected()
        return (connack, limits)
    }

    private mutating func noteConnected() {
        state = .connected
        handshake.noteConnected()
    }

    /// Handles a later packet that belongs to no exchange.
    ///
    /// - Returns: The reason to close the connection, if it ends.
    mutating func receive(_ packet: MQTTPacket) throws(MQTTViolation) -> MQTTClosure? {
        switch packet {
        case .pingresp:
            keepAlive.notePingResponse()
            if learned != nil, let silence = keepAlive.takeSilence() {
                learn { $0.noteAnswer(after: silence) }
                keepAlive.interval = pingInterval
            }
            return nil
        case .disconnect(let disconnect):
            // Only the client may set the interval (MQTT 5, 3.14.2-2).
            guard disconnect.properties.sessionExpiryInterval == nil else {
                throw .propertyNotAllowed(.disconnect)
            }
            return .disconnectedByServer(disconnect.reasonCode, disconnect.properties)
        case .connack(let connack):
            // Mosquitto 2.0 refuses a re-authentication so, and closes the connection.
            guard authentication.isUnderWay, connack.reasonCode.isFailure else {
                throw .secondConnack
            }
            return .refused(connack.reasonCode, connack.properties)
        case .auth(let auth):
            guard authentication.isUsed else { throw .unexpectedAuthentication }
            try handshake.checkExplanation(packet)
            switch try authentication.receive(auth) {
            case .challenge(let properties): events.append(.challenged(properties))
            case .reauthenticated(let properties):
                events.append(.reauthenticated(properties))
            }
            return nil
        default: throw .unexpectedPacket(packet.kind)
        }
    }

    // MARK: Time and the end

    /// The time of silence after which a PINGREQ is due.
    private var pingInterval: Duration {
        learned?.value.interval(within: announcedKeepAlive) ?? announcedKeepAlive
    }

    /// The time at which CONNACK, a PINGREQ or a PINGRESP is due.
    var deadline: WireInstant? {
        switch state {
        case .connecting(let deadline), .verifying(_, _, let deadline): deadline
        case .connected:
            if let limit = usedAuthentication?.value.deadline {
                min(limit, keepAlive.deadline ?? limit)
            } else {
                keepAlive.deadline
            }
        case .idle, .closed: nil
        }
    }

    /// Sends the packet that is due.
    ///
    /// - Returns: The reason to close the connection, if the server is silent.
    mutating func advance(to now: WireInstant) -> MQTTClosure? {
        guard let deadline, deadline <= now else { return nil }
        guard isConnected else {
            // If the server accepts the connection late, it must not publish the will.
            try? write(.disconnect(MQTTDisconnect()), at: now)
            return .connectTimedOut
        }
        if let limit = usedAuthentication?.value.deadline, limit <= now {
            report(.unspecifiedError, at: now)
            return .authenticationTimedOut
        }
        switch keepAlive.due(at: now) {
        case .nothing: return nil
        case .ping:
            try? write(.pingreq, at: now)
            return nil
        case .giveUp:
            // Only a server may send the code for a keep alive timeout (3.14.2.1).
            report(.unspecifiedError, at: now)
            return .keepAliveTimedOut
        }
    }

    /// Notes that the peer has closed the stream.
    ///
    /// Something that forgets silent connections may do so before a PINGREQ is due.
    mutating func noteEndOfStream(at now: WireInstant) {
        guard isConnected, learned != nil, keepAlive.interval > .zero, !keepAlive.isPinging else {
            return
        }
        let silence = keepAlive.silence(at: now)
        learn { $0.noteLoss(after: silence, wasAsked: false) }
    }

    /// Ends the connection, and the calls that end with it.
    mutating func close(_ closure: MQTTClosure, abandoning calls: [any MQTTCall]) {
        state = .closed
        noteLoss(closure)
        for call in calls { events.append(.abandoned(call)) }
        events.append(.closed(closure))
    }

    /// Notes that the path has not borne the silence before the last PINGREQ, if that had no answer.
    private mutating func noteLoss(_ closure: MQTTClosure) {
        guard learned != nil, let silence = keepAlive.takeSilence() else { return }
        switch closure {
        case .keepAliveTimedOut, .endOfStream:
            learn { $0.noteLoss(after: silence, wasAsked: true) }
        default: break
        }
    }

    private mutating func learn(_ note: (inout MQTTKeepAliveProbe) -> Void) {
        guard var probe = learned?.value else { return }
        note(&probe)
        learned = Shared(probe)
    }
}
