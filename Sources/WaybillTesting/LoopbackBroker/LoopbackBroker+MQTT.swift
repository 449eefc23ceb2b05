import MQTTWire
import STOMPWire
import Waybill
import WaybillLink
import WireCore

extension LoopbackBroker {
    func acceptMQTT(_ stream: any ByteStream) {
        guard let timers = try? environment.makeTimers() else { return stream.close() }
        startMQTT(faulty(stream, timers), timers, as: makeIdentifier())
    }

    /// Begins to serve a client over a stream that is open.
    func startMQTT(_ stream: any ByteStream, _ timers: any TimerSource, as identifier: UInt64) {
        let core = MQTTServerConnection(
            maximumPacketSize: configuration.maximumPacketSize,
            isTracing: configuration.log != nil,
            connectTimeout: Self.patience,
            at: timers.now
        )
        let client = MQTTLoopbackClient(
            identifier: identifier,
            core: core,
            stream: stream,
            timers: timers
        )
        add(.mqtt(client), as: identifier)
        client.start { [weak self] event, client in
            self?.handle(event, of: client)
        } onEnd: { [weak self] in
            timers.invalidate()
            self?.remove(identifier)
        }
    }

    private func handle(_ event: MQTTServerConnection.Event, of client: MQTTLoopbackClient) {
        switch event {
        case .connect(let connect): decide(connect, client)
        case .publish(let publish): route(publish, payload: publish.payload, from: client)
        case .subscribe(let subscribe): self.subscribe(subscribe, client)
        case .unsubscribe(let unsubscribe):
            let codes = exchange.withLock { $0.unsubscribe(unsubscribe.filters, client.identifier) }
            client.withCore { core, _ in
                core.answer(
                    MQTTUnsuback(
                        packetIdentifier: unsubscribe.packetIdentifier,
                        reasonCodes: core.version == .v5 ? codes : []
                    )
                )
            }
        case .trace(let trace):
            log(client.identifier, isOutbound: trace.isOutbound, trace.text)
        case .closed(let closure):
            let will = exchange.withLock { $0.remove(client.identifier) }
            var takesLeave = false
            if case .disconnected(let packet) = closure {
                takesLeave = packet.reasonCode != .disconnectWithWillMessage
            }
            if !takesLeave, let will { publish(will, from: client) }
        }
    }

    private func decide(_ connect: MQTTConnect, _ client: MQTTLoopbackClient) {
        func refuse(_ reasonCode: MQTTReasonCode) {
            client.withCore { core, _ in core.refuse(reasonCode) }
        }
        if let refusal = faults.refusesConnections { return refuse(refusal.reasonCode) }
        if !configuration.credentials.isEmpty {
            let password = connect.password.map { String(decoding: $0, as: UTF8.self) }
            guard let user = connect.userName, let password,
                configuration.admits(user, password)
            else { return refuse(.badUserNameOrPassword) }
        }
        var connack = MQTTConnack()
        if connect.version == .v5 {
            connack.properties.receiveMaximum = configuration.receiveMaximum
            connack.properties.serverKeepAlive = configuration.serverKeepAlive
            connack.properties.maximumPacketSize = UInt32(clamping: configuration.maximumPacketSize)
            if connect.clientIdentifier.isEmpty {
                connack.properties.assignedClientIdentifier = "loopback-\(client.identifier)"
            }
        }
        exchange.withLock { $0.setWill(connect.will, of: client.identifier) }
        client.withCore { core, _ in core.accept(connack) }
    }

    private func subscribe(_ packet: MQTTSubscribe, _ client: MQTTLoopbackClient) {
        let refused = faults.refusesSubscriptions
        let version = client.withCore(.paced) { core, _ in core.version }
        let codes = packet.subscriptions.map { subscription in
            refused.contains(where: subscription.filter.hasSameBytes(as:))
                ? (version == .v5 ? MQTTReasonCode.notAuthorized : .unspecifiedError)
                : MQTTReasonCode(rawValue: subscription.qualityOfService.rawValue)
        }
        let granted = zip(packet.subscriptions, codes).filter { !$0.1.isFailure }.map(\.0)
        let identifier = packet.properties.subscriptionIdentifiers.first
        let retained = exchange.withLock { exchange in
            granted.flatMap { exchange.subscribe($0, identifier: identifier, client.identifier) }
        }
        client.withCore { core, _ in
            core.answer(MQTTSuback(packetIdentifier: packet.packetIdentifier, reasonCodes: codes))
        }
        for message in retained { client.send(message) }
    }

    private func publish(_ will: MQTTWill, from client: MQTTLoopbackClient) {
        var publish = MQTTPublish(
            topic: will.topic,
            qualityOfService: will.qualityOfService,
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
        try? route(message, publish, payload: payload, from: client.identifier)
    }
}
