package import WireCore

/// The server side of an MQTT connection, as far as tests and demonstrations need it.
///
/// It handles one connection; the broker handles sessions, routing and retained messages.
///
/// | state | event → next state |
/// | --- | --- |
/// | waiting | CONNECT → asked; anything else, or time → closed |
/// | asked | ``accept(_:at:)`` → connected; ``refuse(_:at:)`` → closed; ``challenge(_:)`` and AUTH → asked |
/// | connected | DISCONNECT either way, violation, silence, end of stream → closed |
/// | closed | none |
package struct MQTTServerConnection: ProtocolCore {
    /// An event of the core for its driver.
    package enum Event: Sendable {
        /// A client requests a connection.
        case connect(MQTTConnect)
        /// A message from the client, reported once and already acknowledged.
        case publish(MQTTPublish)
        case subscribe(MQTTSubscribe)
        case unsubscribe(MQTTUnsubscribe)
        /// The next data of an authentication, or the first data of a re-authentication.
        case authenticate(MQTTAuth)
        case trace(MQTTTrace)
        /// The connection ended; unless the client sent DISCONNECT, its will must be published.
        case closed(MQTTServerClosure)
    }

    enum State: Sendable {
        case waiting(deadline: WireInstant)
        case asked
        case connected
        case closed
    }

    private var state: State
    private var decoder: MQTTPacketDecoder
    private var writer: MQTTPacketWriter
    /// The messages in flight in both directions.
    private var session = MQTTSessionState()
    private var events: [Event] = []
    /// Packets that arrived before the broker's decision about the CONNECT.
    private var held: [MQTTPacket] = []
    private var keepAlive = Duration.zero
    private var lastReceived: WireInstant

    /// The number of messages of QoS 1 and 2 in flight to the client; the client may lower it.
    private var window = 1_000
    /// The highest topic alias that the client allows.
    private var topicAliasMaximum: UInt16 = 0
    /// The topic aliases of the client.
    private var aliases = MQTTReceivedAliases()
    private var authentication = MQTTServerAuthentication()

    /// - Parameters:
    ///   - maximumPacketSize: The longest packet to accept, in bytes.
    ///   - isTracing: Whether packets are reported as ``Event/trace(_:)``.
    ///   - connectTimeout: The time limit for CONNECT.
    ///   - now: The current time.
    package init(
        maximumPacketSize: Int,
        isTracing: Bool = false,
        connectTimeout: Duration = .seconds(10),
        at now: WireInstant
    ) {
        state = .waiting(deadline: now.advanced(by: connectTimeout))
        decoder = MQTTPacketDecoder(
            version: .v5,
            role: .server,
            maximumPacketSize: maximumPacketSize
        )
        writer = MQTTPacketWriter(version: .v5, isTracing: isTracing)
        lastReceived = now
    }

    package var outboundByteCount: Int { writer.outbound.count }

    package var outbound: ByteWriter {
        get { writer.outbound }
        set { writer.outbound = newValue }
        _modify { yield &writer.outbound }
    }

    package var isFinished: Bool {
        if case .closed = state { true } else { false }
    }

    package var hasEvents: Bool { !events.isEmpty }

    package mutating func takeEvents() -> [Event] {
        defer { events = [] }
        return events
    }

    /// The version that the client chose.
    package var version: MQTTVersion { writer.version }

    /// The number of messages of QoS 1 and 2 to the client, in flight and waiting.
    package var outgoingMessageCount: Int { session.messageCount }

    /// The bytes of the outbound messages that wait for room in the window.
    ///
    /// - Complexity: O(waiting messages).
    package var queuedByteCount: Int { session.queuedByteCount }

    /// Whether an exchange of QoS 1 or 2 is open in either direction.
    package var hasMessagesUnderWay: Bool { !session.isEmpty }

    // MARK: Time

    package var deadline: WireInstant? {
        switch state {
        case .waiting(let deadline): deadline
        // One and a half times the interval (MQTT 5, 3.1.2-22).
        case .connected: keepAlive > .zero ? lastReceived.advanced(by: keepAlive * 3 / 2) : nil
        case .asked, .closed: nil
        }
    }

    package mutating func advance(to now: WireInstant) {
        guard let deadline, deadline <= now else { return }
        if case .connected = state {
            disconnect(MQTTDisconnect(reasonCode: .keepAliveTimeout), closure: .timedOut)
        } else {
            close(.timedOut)
        }
    }

    // MARK: Decisions of the broker

    /// Accepts the client.
    ///
    /// A server that allows the client topic aliases uses as many of its own, if the client allows them, too.
    ///
    /// - Parameters:
    ///   - connack: The CONNACK. It gets the client's authentication method, if there is one.
    ///   - earlier: The state from ``takeSessionState()`` at the end of the client's last connection; it is discarded
    ///     unless the CONNACK has Session Present.
    package mutating func accept(
        _ connack: MQTTConnackPacket = MQTTConnackPacket(),
        resuming earlier: MQTTSessionState = MQTTSessionState()
    ) {
        guard case .asked = state else { return }
        state = .connected
        var connack = connack
        if let method = authentication.finish(nil)?.properties.authenticationMethod {
            connack.properties.authenticationMethod = method
        }
        write(.connack(connack))
        if connack.sessionPresent { session = earlier }
        let allowed = connack.properties.topicAliasMaximum ?? 0
        aliases = MQTTReceivedAliases(maximum: allowed)
        writer.aliases = MQTTSentAliases(maximum: min(allowed, topicAliasMaximum))
        session.receiver.maximum =
            connack.properties.receiveMaximum.map(Int.init) ?? Int(UInt16.max)
        if connack.sessionPresent {
            _ = session.publisher.resume(window: window, limits: MQTTServerLimits(), to: &writer)
            collectTraces()
        }
        let packets = held
        held = []
        for packet in packets where !isFinished {
            do { try handle(packet) } catch { violate(error) }
        }
    }

    package mutating func refuse(
        _ reasonCode: MQTTReasonCode,
        properties: MQTTProperties = MQTTProperties()
    ) {
        guard case .asked = state else { return }
        let hasProperties = version == .v5
        write(
            .connack(
                MQTTConnackPacket(
                    sessionPresent: false,
                    reasonCode: reasonCode,
                    properties: hasProperties ? properties : MQTTProperties()
                )
            )
        )
        close(.disconnectedByServer)
    }

    /// Asks the client for the next data of its authentication (MQTT 5, 4.12).
    package mutating func challenge(_ data: [UInt8]?) {
        if !isFinished, let auth = authentication.challenge(data) { write(.auth(auth)) }
    }

    /// Accepts a re-authentication.
    package mutating func acceptAgain(_ data: [UInt8]?) {
        guard case .connected = state, let auth = authentication.finish(data) else { return }
        write(.auth(auth))
    }

    /// Sends a message in its turn.
    package mutating func send(_ message: MQTTOutgoingMessage) {
        guard case .connected = state else { return }
        var message = message
        // 3.1.1 has no properties; brokers leave them out.
        if version == .v3_1_1 { message.publish.properties = MQTTProperties() }
        if message.publish.qos == .atMostOnce {
            try? Self.write(message.publish, message.payload, to: &writer)
        } else {
            let never = WireInstant(nanoseconds: .max)
            try? session.publisher.submit(message, call: nil, deadline: never, to: &writer)
        }
        collectTraces()
    }

    /// Opens the existential payload for the generic writer.
    private static func write(
        _ publish: MQTTPublish,
        _ payload: some WireBytes,
        to writer: inout MQTTPacketWriter
    ) throws(MQTTSendError) {
        try writer.write(publish, payload: payload)
    }

    /// The answer to messages of QoS 1 and 2; nil delays it.
    package var publishAnswer: MQTTReasonCode? = .success

    /// The topics at whose messages the connection ends without an answer.
    package var poison: Set<WireName> = []

    /// Ends the connection without a packet.
    package mutating func abandon() { close(.disconnectedByServer) }

    package mutating func answer(_ suback: MQTTSuback) {
        guard case .connected = state else { return }
        write(.suback(suback))
    }

    package mutating func answer(_ unsuback: MQTTUnsuback) {
        guard case .connected = state else { return }
        write(.unsuback(unsuback))
    }

    /// Sends DISCONNECT if the version has it, and closes.
    package mutating func disconnect(_ packet: MQTTDisconnect) {
        disconnect(packet, closure: .disconnectedByServer)
    }

    private mutating func disconnect(_ packet: MQTTDisconnect, closure: MQTTServerClosure) {
        if case .connected = state, version == .v5 { write(.disconnect(packet)) }
        close(closure)
    }

    // MARK: Receiving

    package mutating func receive(_ buffer: inout ReceiveBuffer, at now: WireInstant) {
        lastReceived = now
        while !isFinished {
            let waiting = buffer.count
            do {
                guard let packet = try decoder.next(&buffer) else { return }
                let byteCount = waiting - buffer.count
                writer.noteTrace(of: packet, byteCount: byteCount, isOutbound: false)
                collectTraces()
                switch (state, packet) {
                case (.asked, .auth(let auth)): try handle(auth)
                case (.asked, _): held.append(packet)
                default: try handle(packet)
                }
            } catch {
                violate(error)
            }
        }
        buffer.removeAll()
    }

    private mutating func violate(_ violation: MQTTViolation) {
        let disconnect = MQTTDisconnect(reasonCode: violation.reasonCode)
        self.disconnect(disconnect, closure: .violation(violation))
    }

    package mutating func receiveEndOfStream(at now: WireInstant) {
        close(.endOfStream)
    }

    private mutating func handle(_ packet: MQTTPacket) throws(MQTTViolation) {
        guard case .connected = state else {
            guard case .connect(let connect) = packet else { throw .unexpectedPacket(packet.kind) }
            return handleConnect(connect)
        }
        switch packet {
        case .publish(let publish): try handlePublish(publish)
        case .puback(let puback):
            _ = session.publisher.receive(puback, isComplete: false, to: &writer)
        case .pubrec(let pubrec): _ = session.publisher.receivePubrec(pubrec, to: &writer)
        case .pubrel(let pubrel): session.receiver.receivePubrel(pubrel, to: &writer)
        case .pubcomp(let pubcomp):
            _ = session.publisher.receive(pubcomp, isComplete: true, to: &writer)
        case .subscribe(let subscribe): events.append(.subscribe(subscribe))
        case .unsubscribe(let unsubscribe): events.append(.unsubscribe(unsubscribe))
        case .pingreq: write(.pingresp)
        case .disconnect(let disconnect): close(.disconnected(disconnect))
        case .auth(let auth): try handle(auth)
        default: throw .unexpectedPacket(packet.kind)
        }
        collectTraces()
    }

    private mutating func handle(_ auth: MQTTAuth) throws(MQTTViolation) {
        try authentication.receive(auth)
        events.append(.authenticate(auth))
    }

    private mutating func handleConnect(_ connect: MQTTConnect) {
        writer.version = connect.version
        keepAlive = .seconds(Int64(connect.keepAlive))
        let properties = connect.properties
        writer.maximumPacketSize = properties.maximumPacketSize.map(Int.init) ?? .max
        window = min(window, properties.receiveMaximum.map(Int.init) ?? window)
        session.publisher.window = window
        topicAliasMaximum = properties.topicAliasMaximum ?? 0
        authentication = MQTTServerAuthentication(method: properties.authenticationMethod)
        state = .asked
        events.append(.connect(connect))
    }

    private mutating func handlePublish(_ publish: MQTTPublish) throws(MQTTViolation) {
        var publish = publish
        try aliases.resolve(&publish)
        guard !poison.contains(publish.topic) else { return abandon() }
        let arrival = try session.receiver.receive(
            publish.qos,
            publish.packetIdentifier,
            isDuplicate: publish.isDuplicate,
            to: &writer
        )
        guard case .deliver(let receipt) = arrival else { return }
        events.append(.publish(publish))
        guard let receipt else { return }
        guard let code = publishAnswer else {
            // Sent with the next acknowledgement, because acknowledgements keep their order (MQTT 5, 4.6).
            session.receiver.settle(receipt, .success)
            return
        }
        // 3.1.1 cannot express a refusal.
        session.receiver.acknowledge(receipt, version == .v5 ? code : .success, to: &writer)
    }

    private mutating func write(_ packet: MQTTPacket) {
        try? writer.write(packet)
        collectTraces()
    }

    private mutating func collectTraces() {
        events.append(contentsOf: writer.takeTraces().map { .trace($0) })
    }

    private mutating func close(_ closure: MQTTServerClosure) {
        guard !isFinished else { return }
        state = .closed
        _ = session.suspend()
        events.append(.closed(closure))
    }

    /// Takes the messages in flight in both directions after the end of the connection.
    ///
    /// Before the end the result is empty.
    package mutating func takeSessionState() -> MQTTSessionState {
        guard isFinished else { return MQTTSessionState() }
        defer { session.removeAll() }
        return session
    }
}

/// The reason why a server's connection ended.
package enum MQTTServerClosure: Hashable, Sendable {
    /// The client sent DISCONNECT.
    case disconnected(MQTTDisconnect)
    /// The server sent DISCONNECT or refused the connection.
    case disconnectedByServer
    /// The client violated the protocol.
    case violation(MQTTViolation)
    /// No CONNECT or no other packet arrived in time.
    case timedOut
    /// The client closed the stream.
    case endOfStream
}
