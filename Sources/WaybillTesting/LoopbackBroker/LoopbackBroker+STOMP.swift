import MQTTWire
import STOMPWire
import WaybillLink
import WireCore

extension LoopbackBroker {
    func acceptSTOMP(_ stream: any ByteStream) {
        startSTOMP(faulty(stream), .stomp, as: makeIdentifier())
    }

    /// Begins to serve a client over a stream that is open.
    func startSTOMP(
        _ stream: any ByteStream,
        _ service: Service,
        as identifier: UInt64
    ) {
        var settings = STOMPServerConnection.Configuration()
        settings.connectTimeout = Self.clientTimeout
        settings.limits.maximumBodyByteCount = configuration.maximumPacketSize
        settings.isTracing = configuration.log != nil
        let client = STOMPLoopbackClient(
            identifier: identifier,
            service: service,
            core: STOMPServerConnection(configuration: settings, at: environment.clock.now),
            stream: stream,
            timers: environment.clock
        )
        add(.stomp(client), as: identifier)
        client.start { [weak self] event, client in
            self?.handle(event, of: client)
        } onEnd: { [weak self] in
            self?.remove(identifier)
        }
    }

    private func handle(_ event: STOMPServerEvent, of client: STOMPLoopbackClient) {
        switch event {
        case .trace(let trace):
            return log(client.identifier, isOutbound: trace.isOutbound, trace.text)
        case .closed(let closure): return leave(closure, client)
        default: break
        }
        if hasForgotten(client.identifier) { return }
        switch event {
        case .connect(let request): admit(request, client)
        case .send(let destination, let frame, let transaction, let receipt):
            let message = LoopbackMessage(
                destination: configuration.relayed(destination),
                headers: forwarded(frame.headers.list, client),
                body: frame.body.bytes
            )
            serve(.send, client, receipt) { () throws(LoopbackFault) in
                try carryOut(.send(message), of: client, in: transaction)
            }
        case .subscribe(let id, let destination, let ackMode, _, let receipt):
            subscribe(id, destination, ackMode, receipt, client)
        case .unsubscribe(let id, let receipt):
            serve(.unsubscribe, client, receipt) { () throws(LoopbackFault) in
                let (destination, deliveries) = destinations.withLock { destinations in
                    (
                        destinations.destination(of: id, client.identifier),
                        destinations.unsubscribe(id, client.identifier)
                    )
                }
                if let destination {
                    observe(.unsubscribed(client: client.identifier, topic: destination))
                }
                deliver(deliveries)
            }
        case .acknowledge(let acknowledgement, let receipt):
            settle(acknowledgement, isAccepted: true, receipt, client)
        case .refuse(let acknowledgement, let receipt):
            settle(acknowledgement, isAccepted: false, receipt, client)
        case .begin(let transaction, let receipt):
            serve(.transaction, client, receipt) { () throws(LoopbackFault) in
                destinations.withLock { $0.begin(transaction, client.identifier) }
            }
        case .commit(let transaction, let receipt):
            serve(.transaction, client, receipt) { () throws(LoopbackFault) in
                let steps = destinations.withLock { $0.end(transaction, client.identifier) }
                for step in steps { try carryOut(step, of: client, in: nil) }
            }
        case .abort(let transaction, let receipt):
            serve(.transaction, client, receipt) { () throws(LoopbackFault) in
                _ = destinations.withLock { $0.end(transaction, client.identifier) }
            }
        case .disconnect, .trace, .closed: break
        }
    }

    private func leave(_ closure: STOMPServerClosure, _ client: STOMPLoopbackClient) {
        if case .violation(let violation) = closure {
            observe(.violation(client: client.identifier, text: violation.message))
        }
        observe(.ended(client: client.identifier))
        deliver(destinations.withLock { $0.remove(client.identifier) })
    }

    private func admit(_ request: STOMPConnectRequest, _ client: STOMPLoopbackClient) {
        func refuse(_ message: String) {
            observe(.refused(client: client.identifier))
            client.refuse(message, nil)
        }
        if let refusal = faults.refusesConnections { return refuse(refusal.message) }
        if takeError(for: .connect) { return refuse("Refused on demand") }
        guard configuration.admits(request.login, request.passcode) else {
            return refuse("Access refused")
        }
        observe(
            .connected(
                client: client.identifier,
                service: client.service,
                clientIdentifier: nil,
                sessionPresent: false
            )
        )
        let heartBeat =
            configuration.stompHeartBeat.map { STOMPHeartBeat(outgoing: $0, incoming: $0) }
            ?? STOMPHeartBeat(
                outgoing: request.heartBeat.incoming,
                incoming: request.heartBeat.outgoing
            )
        client.withCore { core, now in
            core.accept(
                server: configuration.stompServer,
                session: "loopback-\(client.identifier)",
                heartBeat: heartBeat,
                at: now
            )
        }
    }

    /// Does what a request asks for, then answers it.
    private func serve(
        _ request: LoopbackFaults.Request,
        _ client: STOMPLoopbackClient,
        _ receipt: String?,
        _ work: () throws(LoopbackFault) -> Void
    ) {
        if takeError(for: request) { return client.refuse("Refused on demand", receipt) }
        do throws(LoopbackFault) {
            try work()
        } catch {
            return client.refuse(error.message, receipt)
        }
        if !faults.withholdsReceipts { client.answer(receipt) }
    }

    /// The headers of a SEND as they are passed on: with somewhere to answer to instead of a temporary queue.
    private func forwarded(
        _ headers: STOMPHeaders,
        _ client: STOMPLoopbackClient
    ) -> STOMPHeaders {
        let forwarded = LoopbackMessage.forwarded(headers)
        guard let name = forwarded.first(Self.replyTo), LoopbackMessage.isTemporary(name) else {
            return forwarded
        }
        let version = client.withCore(.paced) { core, _ in core.version } ?? .v1_2
        let queue = destinations.withLock { $0.openReplyQueue(name, version, client.identifier) }
        return STOMPHeaders(
            forwarded.fields.map { field in
                field.name.hasSameBytes(as: Self.replyTo) ? .init(field.name, queue) : field
            }
        )
    }

    private static let replyTo = "reply-to"

    private func subscribe(
        _ id: String,
        _ destination: String,
        _ ackMode: STOMPAckMode,
        _ receipt: String?,
        _ client: STOMPLoopbackClient
    ) {
        let version = client.withCore(.paced) { core, _ in core.version } ?? .v1_2
        serve(.subscribe, client, receipt) { () throws(LoopbackFault) in
            let isImplicit =
                LoopbackMessage.isTemporary(destination)
                && configuration.stompServer.hasBytePrefix("RabbitMQ")
            guard !isImplicit, !faults.refusesSubscription(destination) else {
                throw .subscriptionRefused
            }
            observe(.subscribed(client: client.identifier, topic: destination))
            let waiting = destinations.withLock {
                $0.subscribe(id, destination, ackMode, version, client.identifier)
            }
            deliver(waiting)
        }
    }

    private func settle(
        _ acknowledgement: STOMPAcknowledgement,
        isAccepted: Bool,
        _ receipt: String?,
        _ client: STOMPLoopbackClient
    ) {
        serve(.acknowledge, client, receipt) { () throws(LoopbackFault) in
            try destinations.withLock { destinations throws(LoopbackFault) in
                _ = try destinations.find(acknowledgement, client.identifier)
            }
            let step = LoopbackStep.settle(acknowledgement, isAccepted: isAccepted)
            try carryOut(step, of: client, in: acknowledgement.transaction)
        }
    }

    /// Takes a step at once, or keeps it for the end of its transaction.
    private func carryOut(
        _ step: LoopbackStep,
        of client: STOMPLoopbackClient,
        in transaction: String?
    ) throws(LoopbackFault) {
        if let transaction {
            return destinations.withLock { $0.keep(step, in: transaction, client.identifier) }
        }
        switch step {
        case .settle(let acknowledgement, let isAccepted):
            let again = try destinations.withLock { destinations throws(LoopbackFault) in
                try destinations.settle(
                    acknowledgement,
                    isAccepted: isAccepted,
                    client.identifier
                )
            }
            deliver(again)
        case .send(let message):
            observe(
                .published(
                    client: client.identifier,
                    topic: message.destination,
                    payload: message.body,
                    qos: nil
                )
            )
            try route(
                message,
                Self.publish(message),
                payload: ByteSlice(copying: message.body),
                from: client.identifier,
                at: client.now
            )
        }
    }

    /// A STOMP message as MQTT subscribers get it; nil when its destination is no topic name.
    static func publish(_ message: LoopbackMessage) -> MQTTPublish? {
        guard (try? MQTTTopicName.validate(message.destination)) != nil else { return nil }
        var properties = MQTTProperties()
        properties.contentType = message.headers.first(STOMPHeaderName.contentType)
        if let topic = message.headers.first(replyTo),
            (try? MQTTTopicName.validate(topic)) != nil
        {
            properties.responseTopic = topic
        }
        properties.correlationData = message.headers.first("correlation-id").map { Array($0.utf8) }
        let named = [STOMPHeaderName.contentType, replyTo, "correlation-id"]
        properties.userProperties = message.headers.fields
            .filter { !named.contains(where: $0.name.hasSameBytes(as:)) }
            .map { MQTTUserProperty(name: $0.name, value: $0.value) }
        return MQTTPublish(
            topic: message.destination,
            qos: .atLeastOnce,
            isRetained: false,
            properties: properties
        )
    }
}
