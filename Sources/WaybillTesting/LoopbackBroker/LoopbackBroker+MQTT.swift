import MQTTWire
import STOMPWire
import Waybill
import WaybillLink
import WireCore

extension LoopbackBroker {
    func acceptMQTT(_ stream: any ByteStream) {
        startMQTT(faulty(stream), .mqtt, as: makeIdentifier())
    }

    /// Begins to serve a client over a stream that is open.
    func startMQTT(
        _ stream: any ByteStream,
        _ service: Service,
        as identifier: UInt64
    ) {
        var core = MQTTServerConnection(
            maximumPacketSize: configuration.maximumPacketSize,
            isTracing: configuration.log != nil,
            connectTimeout: Self.clientTimeout,
            at: environment.clock.now
        )
        core.publishAnswer = faults.publishAnswer
        let client = MQTTLoopbackClient(
            identifier: identifier,
            service: service,
            core: core,
            stream: stream,
            timers: environment.clock
        )
        add(.mqtt(client), as: identifier)
        client.start { [weak self] event, client in
            self?.handle(event, of: client)
        } onEnd: { [weak self] in
            self?.remove(identifier)
        }
    }

    private func handle(_ event: MQTTServerConnection.Event, of client: MQTTLoopbackClient) {
        switch event {
        case .trace(let trace):
            return log(client.identifier, isOutbound: trace.isOutbound, trace.text)
        case .closed(let closure): return leave(closure, client)
        default: break
        }
        if hasForgotten(client.identifier) { return }
        switch event {
        case .connect(let connect): decide(connect, client)
        case .publish(let publish):
            observe(
                .published(
                    client: client.identifier,
                    topic: publish.topic,
                    payload: publish.payload.bytes,
                    qos: publish.qos.rawValue
                )
            )
            let isRefused = faults.refusesMessages != nil && publish.qos != .atMostOnce
            if !isRefused || client.withCore(.paced, { core, _ in core.version }) != .v5 {
                route(publish, payload: publish.payload, from: client)
            }
        case .subscribe(let subscribe): self.subscribe(subscribe, client)
        case .unsubscribe(let unsubscribe): self.unsubscribe(unsubscribe, client)
        case .trace, .closed: break
        }
    }

    // MARK: Connections and sessions

    private func decide(_ connect: MQTTConnect, _ client: MQTTLoopbackClient) {
        func refuse(_ reasonCode: MQTTReasonCode) {
            observe(.refused(client: client.identifier))
            client.withCore { core, _ in core.refuse(reasonCode) }
        }
        if let refusal = faults.refusesConnections { return refuse(refusal.reasonCode) }
        let password = connect.password.map { String(decoding: $0, as: UTF8.self) }
        guard configuration.admits(connect.userName, password) else {
            return refuse(.badUserNameOrPassword)
        }
        var connect = connect
        if connect.clientIdentifier.isEmpty {
            // A session that no client could come back to (MQTT 3.1.1, 3.1.3-8).
            guard connect.version == .v5 || connect.cleanStart else {
                return refuse(.clientIdentifierNotValid)
            }
            connect.clientIdentifier = Self.assignedIdentifier(client)
        }
        let now = client.now
        switch exchange.withLock({ $0.enter(connect, client.identifier, at: now) }) {
        case .admitted(let admission): admit(admission)
        case .waits(let owner, let earlier):
            // Two connections may wait for a third: the last one gets the session.
            if let earlier { member(earlier)?.cut() }
            guard case .mqtt(let owner)? = member(owner) else { return }
            owner.disconnect(.sessionTakenOver)
        }
    }

    private static func assignedIdentifier(_ client: MQTTLoopbackClient) -> String {
        "loopback-\(client.identifier)"
    }

    /// Accepts a client that has its session.
    private func admit(_ admission: LoopbackAdmission) {
        guard case .mqtt(let client)? = member(admission.client) else { return }
        let connect = admission.connect
        var connack = MQTTConnack(sessionPresent: admission.isPresent)
        if connect.version == .v5 {
            connack.properties.receiveMaximum = configuration.receiveMaximum
            connack.properties.serverKeepAlive = configuration.serverKeepAlive
            connack.properties.maximumPacketSize = UInt32(clamping: configuration.maximumPacketSize)
            let assigned = Self.assignedIdentifier(client)
            if connect.clientIdentifier.hasSameBytes(as: assigned) {
                connack.properties.assignedClientIdentifier = assigned
            }
        }
        // Before what it sends next.
        observe(
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
            let opened = exchange.withLock { $0.open(admission.session, client.identifier) }
            guard let opened else { return false }
            core.accept(connack, resuming: opened.state)
            for message in opened.waiting {
                // A DISCONNECT that came with CONNECT has ended the connection by now.
                if core.isFinished {
                    exchange.withLock { $0.keep(message, for: admission.session) }
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
        let keepsSession = !faults.losesSessions
        let departure = exchange.withLock { exchange in
            exchange.leave(client.identifier, state, closure, keepsSession: keepsSession, at: now)
        }
        if case .violation(let violation) = closure {
            observe(.violation(client: client.identifier, text: violation.text))
        }
        observe(.ended(client: client.identifier))
        if let will = departure.will { publish(will, from: client) }
        if let successor = departure.successor { admit(successor) }
    }

    // MARK: Subscriptions

    private func subscribe(_ packet: MQTTSubscribe, _ client: MQTTLoopbackClient) {
        let refused = faults.refusesSubscriptions
        let version = client.withCore(.paced) { core, _ in core.version }
        let codes = packet.subscriptions.map { subscription in
            refused.contains(where: subscription.filter.hasSameBytes(as:))
                ? (version == .v5 ? MQTTReasonCode.notAuthorized : .unspecifiedError)
                : MQTTReasonCode(rawValue: subscription.qos.rawValue)
        }
        let granted = zip(packet.subscriptions, codes).filter { !$0.1.isFailure }.map(\.0)
        let identifier = packet.properties.subscriptionIdentifiers.first
        let (session, retained) = exchange.withLock { exchange in
            let session = exchange.clientSessions[client.identifier] ?? 0
            let retained = granted.flatMap { subscription in
                exchange.subscribe(subscription, identifier: identifier, session)
            }
            return (session, retained)
        }
        for subscription in granted {
            observe(.subscribed(client: client.identifier, topic: subscription.filter))
        }
        let withholdsAnswer = faults.withholdsSubscriptionAnswers
        client.withCore { core, _ in
            guard !withholdsAnswer else { return }
            core.answer(MQTTSuback(packetIdentifier: packet.packetIdentifier, reasonCodes: codes))
        }
        for message in retained {
            deliver(LoopbackCopy(client: client.identifier, session: session, message: message))
        }
    }

    private func unsubscribe(_ packet: MQTTUnsubscribe, _ client: MQTTLoopbackClient) {
        let codes = exchange.withLock { exchange in
            let session = exchange.clientSessions[client.identifier] ?? 0
            return exchange.unsubscribe(packet.filters, session)
        }
        for filter in packet.filters {
            observe(.unsubscribed(client: client.identifier, topic: filter))
        }
        let withholdsAnswer = faults.withholdsSubscriptionAnswers
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
            if case .mqtt(let member)? = member(client), member.send(copy.message) { return }
            owner = exchange.withLock { exchange in
                exchange.keep(copy.message, for: copy.session, refusedBy: client)
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
        publish.topic = configuration.relayed(publish.topic)
        var headers = STOMPHeaders()
        if let contentType = publish.properties.contentType {
            headers.append(STOMPHeaderName.contentType, contentType)
        }
        if let topic = publish.properties.responseTopic { headers.append("reply-to", topic) }
        if let data = publish.properties.correlationData, let text = Payload(data).text {
            headers.append("correlation-id", text)
        }
        for property in publish.properties.userProperties {
            headers.append(property.name, property.value)
        }
        let message = LoopbackMessage(
            destination: publish.topic,
            headers: headers,
            body: payload.bytes
        )
        // MQTT cannot be told that a queue is full: what does not fit is lost.
        try? route(message, publish, payload: payload, from: client.identifier, at: client.now)
    }
}
