import STOMPWire
import WaybillLink
import WireCore

/// The STOMP service of the broker.
struct LoopbackSTOMP: Sendable {
    let hub: LoopbackHub

    func accept(
        _ stream: any ByteStream,
        _ service: LoopbackBroker.Service,
        as identifier: UInt64
    ) {
        var settings = STOMPServerConfiguration()
        settings.connectTimeout = LoopbackHub.clientTimeout
        settings.limits.maximumBodyByteCount = hub.configuration.maximumPacketSize
        settings.isTracing = hub.configuration.log != nil
        let client = STOMPLoopbackClient(
            identifier: identifier,
            service: service,
            core: STOMPServerConnection(configuration: settings, at: hub.environment.clock.now),
            stream: stream,
            timers: hub.environment.clock
        )
        hub.serve(client, as: .stomp(client)) { event, client, hub in
            hub.stomp.handle(event, of: client)
        }
    }

    private func handle(_ event: STOMPServerEvent, of client: STOMPLoopbackClient) {
        switch event {
        case .trace(let trace):
            return hub.log(client.identifier, isOutbound: trace.isOutbound, trace.text)
        case .closed(let closure): return leave(closure, client)
        default: break
        }
        if hub.withState({ $0.hasForgotten(client.identifier) }) { return }
        switch event {
        case .connect(let request): admit(request, client)
        case .send(let destination, let frame, let transaction, let receipt):
            let message = LoopbackMessage(
                destination: hub.configuration.relayed(destination),
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
                let (destination, deliveries) = hub.withState { state in
                    (
                        state.destinations.destination(of: id, client.identifier),
                        state.destinations.unsubscribe(id, client.identifier)
                    )
                }
                if let destination {
                    hub.observe(.unsubscribed(client: client.identifier, topic: destination))
                }
                deliver(deliveries)
            }
        case .acknowledge(let acknowledgement, let receipt):
            settle(acknowledgement, isAccepted: true, receipt, client)
        case .refuse(let acknowledgement, let receipt):
            settle(acknowledgement, isAccepted: false, receipt, client)
        case .begin(let transaction, let receipt):
            serve(.transaction, client, receipt) { () throws(LoopbackFault) in
                hub.withState { $0.destinations.begin(transaction, client.identifier) }
            }
        case .commit(let transaction, let receipt):
            serve(.transaction, client, receipt) { () throws(LoopbackFault) in
                let steps = hub.withState { $0.destinations.end(transaction, client.identifier) }
                for step in steps { try carryOut(step, of: client, in: nil) }
            }
        case .abort(let transaction, let receipt):
            serve(.transaction, client, receipt) { () throws(LoopbackFault) in
                _ = hub.withState { $0.destinations.end(transaction, client.identifier) }
            }
        case .disconnect, .trace, .closed: break
        }
    }

    private func leave(_ closure: STOMPServerClosure, _ client: STOMPLoopbackClient) {
        if case .violation(let violation) = closure {
            hub.observe(.violation(client: client.identifier, text: violation.message))
        }
        hub.observe(.ended(client: client.identifier))
        deliver(hub.withState { $0.destinations.remove(client.identifier) })
    }

    private func admit(_ request: STOMPConnectRequest, _ client: STOMPLoopbackClient) {
        func refuse(_ message: String) {
            hub.observe(.refused(client: client.identifier))
            client.refuse(message, nil)
        }
        if let refusal = hub.faults.refusesConnections { return refuse(refusal.message) }
        if hub.withState({ $0.faults.takeError(for: .connect) }) {
            return refuse("Refused on demand")
        }
        guard hub.configuration.admits(request.login, request.passcode) else {
            return refuse("Access refused")
        }
        hub.observe(.connected(client: client.identifier, service: client.service))
        let heartBeat =
            hub.configuration.stompHeartBeat.map { STOMPHeartBeat(outgoing: $0, incoming: $0) }
            ?? STOMPHeartBeat(
                outgoing: request.heartBeat.incoming,
                incoming: request.heartBeat.outgoing
            )
        client.withCore { core, now in
            core.accept(
                server: hub.configuration.stompServer,
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
        if hub.withState({ $0.faults.takeError(for: request) }) {
            return client.refuse("Refused on demand", receipt)
        }
        do throws(LoopbackFault) {
            try work()
        } catch {
            return client.refuse(error.message, receipt)
        }
        if !hub.faults.withholdsReceipts { client.answer(receipt) }
    }

    /// The headers of a SEND as they are passed on: with somewhere to answer to instead of a temporary queue.
    private func forwarded(
        _ headers: STOMPHeaders,
        _ client: STOMPLoopbackClient
    ) -> STOMPHeaders {
        let forwarded = LoopbackMessage.forwarded(headers)
        guard let name = forwarded.first(LoopbackMessage.replyTo), LoopbackMessage.isTemporary(name)
        else {
            return forwarded
        }
        let version = client.withCore(.paced) { core, _ in core.version } ?? .v1_2
        let queue = hub.withState {
            $0.destinations.openReplyQueue(name, version, client.identifier)
        }
        return STOMPHeaders(
            forwarded.fields.map { field in
                field.name.hasSameBytes(as: LoopbackMessage.replyTo)
                    ? .init(field.name, queue) : field
            }
        )
    }

    private func subscribe(
        _ id: String,
        _ destination: String,
        _ ackMode: STOMPAckMode,
        _ receipt: String?,
        _ client: STOMPLoopbackClient
    ) {
        guard !hub.faults.endsConnection(at: [destination]) else {
            return client.refuse("Processing error", nil)
        }
        let version = client.withCore(.paced) { core, _ in core.version } ?? .v1_2
        serve(.subscribe, client, receipt) { () throws(LoopbackFault) in
            let isImplicit =
                LoopbackMessage.isTemporary(destination)
                && hub.configuration.stompServer.hasBytePrefix("RabbitMQ")
            guard !isImplicit, !hub.faults.refusesSubscription(destination) else {
                throw .subscriptionRefused
            }
            hub.observe(.subscribed(client: client.identifier, topic: destination))
            let waiting = hub.withState {
                $0.destinations.subscribe(id, destination, ackMode, version, client.identifier)
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
            try hub.withState { state throws(LoopbackFault) in
                _ = try state.destinations.find(acknowledgement, client.identifier)
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
            return try hub.withState { state throws(LoopbackFault) in
                if case .send(let message) = step { try state.makeRoom(for: message.byteCount) }
                state.destinations.keep(step, in: transaction, client.identifier)
            }
        }
        switch step {
        case .settle(let acknowledgement, let isAccepted):
            let again = try hub.withState { state throws(LoopbackFault) in
                try state.destinations.settle(
                    acknowledgement,
                    isAccepted: isAccepted,
                    client.identifier
                )
            }
            deliver(again)
        case .send(let message):
            hub.observe(
                .published(
                    client: client.identifier,
                    topic: message.destination,
                    payload: message.body
                )
            )
            try hub.route(message, from: client.identifier, at: client.now)
        }
    }

    /// Sends messages to their clients.
    func deliver(_ deliveries: [LoopbackDelivery]) {
        for delivery in deliveries {
            guard case .stomp(let client)? = hub.member(delivery.client) else { continue }
            client.send(delivery)
        }
    }
}
