import MQTTWire
import WaybillLink
import WireCore

/// The MQTT service of the broker.
struct LoopbackMQTT: Sendable {
    let hub: LoopbackHub

    func accept(
        _ stream: any ByteStream,
        _ service: LoopbackBroker.Service,
        as identifier: UInt64
    ) {
        var core = MQTTServerConnection(
            maximumPacketSize: hub.configuration.maximumPacketSize,
            isTracing: hub.configuration.log != nil,
            connectTimeout: LoopbackHub.clientTimeout,
            at: hub.environment.clock.now
        )
        core.publishAnswer = hub.faults.publishAnswer
        core.poison = hub.faults.poison
        let client = MQTTLoopbackClient(
            identifier: identifier,
            service: service,
            core: core,
            stream: stream,
            timers: hub.environment.clock
        )
        hub.serve(client, as: .mqtt(client)) { event, client, hub in
            hub.mqtt.handle(event, of: client)
        }
    }

    private func handle(_ event: MQTTServerConnection.Event, of client: MQTTLoopbackClient) {
        switch event {
        case .trace(let trace):
            return hub.log(client.identifier, isOutbound: trace.isOutbound, trace.text)
        case .closed(let closure): return leave(closure, client)
        default: break
        }
        if hub.withState({ $0.hasForgotten(client.identifier) }) { return }
        switch event {
        case .connect(let connect): decide(connect, client)
        case .publish(let publish):
            hub.observe(
                .published(
                    client: client.identifier,
                    topic: publish.topic,
                    payload: publish.payload.bytes,
                    qos: publish.qos.rawValue
                )
            )
            let isRefused = hub.faults.refusesMessages != nil && publish.qos != .atMostOnce
            if !isRefused || client.withCore(.paced, { core, _ in core.version }) != .v5 {
                route(publish, payload: publish.payload, from: client)
            }
        case .subscribe(let subscribe): self.subscribe(subscribe, client)
        case .unsubscribe(let unsubscribe): self.unsubscribe(unsubscribe, client)
        case .authenticate(let auth): handle(auth, of: client)
        case .trace, .closed: break
        }
    }

    // MARK: Connections and sessions

    private func decide(_ connect: MQTTConnect, _ client: MQTTLoopbackClient) {
        func refuse(_ reasonCode: MQTTReasonCode) {
            hub.observe(.refused(client: client.identifier))
            client.withCore { core, _ in core.refuse(reasonCode) }
        }
        if let refusal = hub.faults.refusesConnections { return refuse(refusal.reasonCode) }
        let password = connect.password.map { String(decoding: $0, as: UTF8.self) }
        guard hub.configuration.admits(connect.userName, password) else {
            return refuse(.badUserNameOrPassword)
        }
        guard let required = hub.configuration.authentication else {
            return enter(connect, client)
        }
        if let code = authenticate(connect, required, client) { refuse(code) }
    }

    /// Lets an authenticated client in, when its session is free.
    func enter(_ connect: MQTTConnect, _ client: MQTTLoopbackClient) {
        var connect = connect
        if connect.clientIdentifier.isEmpty {
            // A session that no client could come back to (MQTT 3.1.1, 3.1.3-8).
            guard connect.version == .v5 || connect.cleanStart else {
                hub.observe(.refused(client: client.identifier))
                return client.withCore { core, _ in core.refuse(.clientIdentifierNotValid) }
            }
            connect.clientIdentifier = Self.assignedIdentifier(client)
        }
        let now = client.now
        let entrance = hub.withState { $0.exchange.enter(connect, client.identifier, at: now) }
        switch entrance {
        case .admitted(let admission): admit(admission)
        case .waits(let owner, let earlier):
            // Two connections may wait for a third: the last one gets the session.
            if let earlier { hub.member(earlier)?.cut() }
            guard case .mqtt(let owner)? = hub.member(owner) else { return }
            owner.disconnect(.sessionTakenOver)
        }
    }

    private static func assignedIdentifier(_ client: MQTTLoopbackClient) -> String {
        "loopback-\(client.identifier)"
    }

    /// Accepts a client that has its session.
    private func admit(_ admission: LoopbackAdmission) {
        guard case .mqtt(let client)? = hub.member(admission.client) else { return }
        let connect = admission.connect
        var connack = MQTTConnackPacket(sessionPresent: admission.isPresent)
        if connect.version == .v5 {
            connack.properties.authenticationData = hub.withState { state in
                state.authentications[client.identifier]?.lastData
            }
            connack.properties.receiveMaximum = hub.configuration.receiveMaximum
            connack.properties.topicAliasMaximum = hub.configuration.topicAliasMaximum
            connack.properties.serverKeepAlive = hub.configuration.serverKeepAlive
            connack.properties.maximumPacketSize = UInt32(
                clamping: hub.configuration.maximumPacketSize
            )
            let assigned = Self.assignedIdentifier(client)
            if connect.clientIdentifier.hasSameBytes(as: assigned) {
                connack.properties.assignedClientIdentifier = assigned
            }
        }
        // Before what it sends next.
        hub.observe(
            .connected(
                client: client.identifier,
                service: client.service,
                clientIdentifier: connect.clientIdentifier,
                sessionPresent: admission.isPresent
            )
        )
        let isAccepted = client.withCore { core, _ in
            guard !core.isFinished else { return true }
            // With the core locked: a thread that finds the session open finds the connection accepted.
            let opened = hub.withState { $0.exchange.open(admission.session, client.identifier) }
            guard let opened else { return false }
            core.accept(connack, resuming: opened.state)
            for message in opened.waiting {
                // A DISCONNECT that came with CONNECT has ended the connection by now.
                if core.isFinished {
                    hub.withState { $0.exchange.keep(message, for: admission.session) }
                } else {
                    core.send(message)
                }
            }
            return true
        }
        if !isAccepted { client.cut() }
    }

    /// Keeps or ends the session of a connection that is over, and lets in a client that has waited for that.
    private func leave(_ closure: MQTTServerClosure, _ client: MQTTLoopbackClient) {
        let state = client.withCore { core, _ in core.takeSessionState() }
        let now = client.now
        let departure = hub.withState { known in
            known.authentications[client.identifier] = nil
            return known.exchange.leave(
                client.identifier,
                state,
                closure,
                keepsSession: !known.faults.losesSessions,
                at: now
            )
        }
        if case .violation(let violation) = closure {
            hub.observe(.violation(client: client.identifier, text: violation.text))
        }
        hub.observe(.ended(client: client.identifier))
        if let will = departure.will { publish(will, from: client) }
        if let successor = departure.successor { admit(successor) }
    }

    // MARK: Subscriptions

    private func subscribe(_ packet: MQTTSubscribe, _ client: MQTTLoopbackClient) {
        guard !hub.faults.endsConnection(at: packet.subscriptions.map(\.filter)) else {
            return client.withCore { core, _ in core.abandon() }
        }
        let refused = hub.faults.refusesSubscriptions
        let version = client.withCore(.paced) { core, _ in core.version }
        let codes = packet.subscriptions.map { subscription in
            refused.contains(where: subscription.filter.hasSameBytes(as:))
                ? (version == .v5 ? MQTTReasonCode.notAuthorized : .unspecifiedError)
                : MQTTReasonCode(rawValue: subscription.qos.rawValue)
        }
        let granted = zip(packet.subscriptions, codes).filter { !$0.1.isFailure }.map(\.0)
        let identifier = packet.properties.subscriptionIdentifiers.first
        let (session, retained) = hub.withState { state in
            let session = state.exchange.clientSessions[client.identifier] ?? 0
            let retained = granted.flatMap { subscription in
                state.exchange.subscribe(subscription, identifier: identifier, session)
            }
            return (session, retained)
        }
        for subscription in granted {
            hub.observe(.subscribed(client: client.identifier, topic: subscription.filter))
        }
        let withholdsAnswer = hub.faults.withholdsSubscriptionAnswers
        client.withCore { core, _ in
            guard !withholdsAnswer else { return }
            core.answer(MQTTSuback(packetIdentifier: packet.packetIdentifier, reasonCodes: codes))
        }
        for message in retained {
            deliver(LoopbackCopy(client: client.identifier, session: session, message: message))
        }
    }

    private func unsubscribe(_ packet: MQTTUnsubscribe, _ client: MQTTLoopbackClient) {
        guard packet.filters.count <= hub.faults.maximumFiltersPerPacket ?? .max else {
            return client.withCore { core, _ in core.abandon() }
        }
        let codes = hub.withState { state in
            let session = state.exchange.clientSessions[client.identifier] ?? 0
            return state.exchange.unsubscribe(packet.filters, session)
        }
        for filter in packet.filters {
            hub.observe(.unsubscribed(client: client.identifier, topic: filter))
        }
        let withholdsAnswer = hub.faults.withholdsSubscriptionAnswers
        client.withCore { core, _ in
            guard !withholdsAnswer else { return }
            core.answer(
                MQTTUnsuback(
                    packetIdentifier: packet.packetIdentifier,
                    reasonCodes: core.version == .v5 ? codes : []
                )
            )
        }
    }

    // MARK: Messages

    /// Sends a message to the connection of its session, or keeps it there when that is over.
    func deliver(_ copy: LoopbackCopy) {
        var owner: UInt64? = copy.client
        while let client = owner {
            if case .mqtt(let member)? = hub.member(client), member.send(copy.message) { return }
            owner = hub.withState { state in
                state.exchange.keep(copy.message, for: copy.session, refusedBy: client)
            }
        }
    }

    private func publish(_ will: MQTTWill, from client: MQTTLoopbackClient) {
        var publish = MQTTPublish(
            topic: will.topic,
            qos: will.qos,
            isRetained: will.isRetained,
            properties: will.properties
        )
        publish.properties.willDelayInterval = nil
        route(publish, payload: ByteSlice(copying: will.payload), from: client)
    }

    private func route(
        _ publish: MQTTPublish,
        payload: ByteSlice,
        from client: MQTTLoopbackClient
    ) {
        var publish = publish
        publish.topic = hub.configuration.relayed(publish.topic)
        let message = LoopbackMessage(publish, payload: payload)
        // MQTT cannot be told that a queue is full: what does not fit is lost.
        try? hub.route(
            message,
            publish,
            payload: payload,
            from: client.identifier,
            at: client.now
        )
    }
}
