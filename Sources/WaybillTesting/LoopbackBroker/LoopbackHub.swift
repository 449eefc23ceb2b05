import MQTTWire
import WaybillLink
import WireCore

/// The part of the broker that its services share: carries out what ``LoopbackState`` decides.
final class LoopbackHub: Sendable {
    private struct State: Sendable {
        var known: LoopbackState
        var listeners: [LoopbackListener] = []
        /// True while clients that were accepted a moment ago are cut, too.
        var isStopping = false
        var emptied: [CheckedContinuation<Void, Never>] = []
    }

    let configuration: LoopbackBroker.Configuration
    /// The clock and the randomness of all connections.
    let environment: LinkEnvironment
    private let state: Locked<State>

    /// The time that a client has for its first packet: long, since a machine full of tests is slow.
    static let clientTimeout = Duration.seconds(60)

    init(_ configuration: LoopbackBroker.Configuration, _ environment: LinkEnvironment) {
        self.configuration = configuration
        self.environment = environment
        state = Locked(State(known: LoopbackState(configuration)))
    }

    func withState<Result: Sendable, Failure: Error>(
        _ body: (inout LoopbackState) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try state.withLock { state throws(Failure) in try body(&state.known) }
    }

    var faults: LoopbackFaults { withState { $0.faults } }

    // The compiler takes an initializer in an expression with `accept` for one of a class, and warns that the hub is
    // deallocated at once.
    var mqtt: LoopbackMQTT { LoopbackMQTT(hub: self) }
    var stomp: LoopbackSTOMP { LoopbackSTOMP(hub: self) }
    var webSockets: LoopbackWebSockets { LoopbackWebSockets(hub: self) }
    var eventStreams: LoopbackEventStreams { LoopbackEventStreams(hub: self) }

    // MARK: Listening

    /// Listens for all services, in the order of ``port(for:)``.
    func listen() throws {
        let ports: [(UInt16, LoopbackBroker.Service)] = [
            (configuration.port, .mqtt), (configuration.stompPort, .stomp),
            (configuration.webSocketPort, .mqttOverWebSocket),
            (configuration.eventStreamPort, .eventStream),
        ]
        let listeners = try LoopbackListener.listen(
            ports.map { port, service in
                (port, { [weak self] in self?.accept($0, as: service) })
            }
        )
        state.withLock { state in
            state.listeners = listeners
            state.isStopping = false
        }
    }

    /// The port of a service; 0 before ``listen()``.
    func port(for service: LoopbackBroker.Service) -> UInt16 {
        let index =
            switch service {
            case .mqtt: 0
            case .stomp: 1
            case .mqttOverWebSocket, .stompOverWebSocket: 2
            case .eventStream: 3
            }
        return state.withLock { state in
            state.listeners.indices.contains(index) ? state.listeners[index].port : 0
        }
    }

    /// Stops listening, cuts every connection and waits until all are gone.
    func stop() async {
        let listeners = state.withLock { state in
            defer { state.listeners = [] }
            state.isStopping = true
            return state.listeners
        }
        for listener in listeners { listener.close() }
        for member in members { member.cut() }
        await withCheckedContinuation { continuation in
            let isEmpty = state.withLock { state in
                if state.known.membersInOrder.isEmpty { return true }
                state.emptied.append(continuation)
                return false
            }
            if isEmpty { continuation.resume() }
        }
        LinkEnvironment.reclaim()
    }

    // MARK: Members

    var members: [LoopbackMember] { withState { $0.membersInOrder } }

    func member(_ identifier: UInt64) -> LoopbackMember? { withState { $0.member(identifier) } }

    /// Serves a client over a stream that is open, with the faults of the moment.
    func accept(_ stream: any ByteStream, as service: LoopbackBroker.Service) {
        let (identifier, faults) = withState { ($0.makeIdentifier(), $0.faults) }
        let stream =
            faults.affectsBytes
            ? FaultyStream(stream, faults: faults, timers: environment.clock) : stream
        switch service {
        case .mqtt: mqtt.accept(stream, service, as: identifier)
        case .stomp: stomp.accept(stream, service, as: identifier)
        case .mqttOverWebSocket, .stompOverWebSocket:
            webSockets.accept(stream, as: identifier)
        case .eventStream: eventStreams.accept(stream, as: identifier)
        }
    }

    /// Sets a client going, and keeps it among the members until its end.
    ///
    /// - Parameters:
    ///   - client: The client.
    ///   - member: The same as a member.
    ///   - handle: Called with each event of the client.
    func serve<Core: ProtocolCore>(
        _ client: LoopbackClient<Core>,
        as member: LoopbackMember,
        _ handle: @escaping @Sendable (Core.Event, LoopbackClient<Core>, LoopbackHub) -> Void
    ) {
        add(member, as: client.identifier)
        client.start { [weak self] event, client in
            if let self { handle(event, client, self) }
        } onEnd: { [weak self] in
            self?.remove(client.identifier)
        }
    }

    func add(_ member: LoopbackMember, as identifier: UInt64) {
        let isLate = state.withLock { state in
            state.known.add(member, as: identifier)
            return state.isStopping
        }
        // Accepted while the broker stops: `stop()` would wait for this client, too.
        if isLate { member.cut() }
    }

    func remove(_ identifier: UInt64) {
        let waiting: [CheckedContinuation<Void, Never>] = state.withLock { state in
            state.known.remove(identifier)
            guard state.known.membersInOrder.isEmpty else { return [] }
            defer { state.emptied = [] }
            return state.emptied
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Sets the faults, and tells the MQTT connections of the new acknowledgement.
    func setFaults(_ faults: LoopbackFaults) {
        withState { $0.faults = faults }
        let (answer, poison) = (faults.publishAnswer, faults.poison)
        for case .mqtt(let client) in members {
            client.withCore(.paced) { core, _ in
                core.publishAnswer = answer
                core.poison = poison
            }
        }
    }

    // MARK: Observers

    func log(_ identifier: UInt64, isOutbound: Bool, _ text: String) {
        // Seen from the broker: outbound text goes to the right.
        configuration.log?("client \(identifier) \(isOutbound ? "→" : "←") \(text)")
    }

    func observe(_ occurrence: @autoclosure () -> LoopbackOccurrence) {
        if let observe = configuration.observe { observe(occurrence()) }
    }

    // MARK: Messages

    /// Delivers a message to the subscribers of all protocols.
    ///
    /// - Parameters:
    ///   - message: The message as STOMP subscribers and event streams get it.
    ///   - publish: The message as MQTT subscribers get it; nil derives it from `message`.
    ///   - payload: The payload for MQTT subscribers; nil takes the body.
    ///   - sender: The connection that it came over; 0 for the broker itself.
    ///   - now: The time.
    /// - Throws: `LoopbackFault` when its queue is full.
    func route(
        _ message: LoopbackMessage,
        _ publish: MQTTPublish? = nil,
        payload: ByteSlice? = nil,
        from sender: UInt64,
        at now: WireInstant
    ) throws(LoopbackFault) {
        let publish = publish ?? message.publish
        let payload = payload ?? ByteSlice(copying: message.body)
        let dispatch = try withState { state throws(LoopbackFault) in
            try state.route(message, publish, payload: payload, from: sender, at: now)
        }
        stomp.deliver(dispatch.deliveries)
        for case .http(let client)? in dispatch.streams.map(member) {
            eventStreams.sendEvents(to: client)
        }
        for copy in dispatch.copies { mqtt.deliver(copy) }
    }

    // MARK: Inspection

    /// All MQTT sessions, with the messages that their connections have under way.
    var sessions: [LoopbackSessionReport] {
        let now = environment.clock.now
        let found = withState { state in
            state.exchange.removeExpired(at: now)
            return state.exchange.reports
        }
        return found.map { report, client in
            guard let client, case .mqtt(let member)? = member(client) else { return report }
            var report = report
            report.queuedMessageCount += member.withCore(.paced) { core, _ in
                core.outgoingMessageCount
            }
            return report
        }
    }

    var isIdle: Bool {
        withState { $0.destinations.isIdle && $0.eventTopics.isIdle }
            && members.allSatisfy(\.isIdle)
    }
}
