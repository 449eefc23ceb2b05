import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Sends messages: over the present connection, over one that it makes, or when a lost one is back.
struct MQTTSender: Sendable {
    let connector: MQTTConnector
    /// Stores messages until they are acknowledged; nil without a store.
    let outbox: Outbox?
    let replies: MQTTReplies
    /// Receives an event for each send.
    let events: TransportEventSource

    var lifecycle: ConnectionLifecycle<MQTTConnection> { connector.lifecycle }
    var version: MQTTVersion { connector.version }
    var configuration: MQTTConfiguration { connector.configuration }
    var session: MQTTSession { connector.session }

    /// Sends, and reports the result.
    func send(_ request: Request) async throws -> Receipt {
        let begun = events.timestamp
        let (command, qos) = (request.command, request.command.qos)
        let (topic, byteCount) = (request.topic, request.body.count)
        do {
            let publish = try MQTTPublishMapping.packet(request, version: version)
            if request.expectsReply {
                let receipt = try await reply(to: publish, request)
                events.reportSend(topic, byteCount: byteCount, qos: qos, nil, since: begun)
                return receipt
            }
            let isObserved = begun != nil
            var terms = SendTerms(
                isLasting: lifecycle.requests.waits(command, isAcknowledged: qos != .atMostOnce),
                command: command,
                begun: lifecycle.clock.now
            )
            let receipt: Receipt
            if let outbox, qos != .atMostOnce, !command.isSet(.sentOnce) {
                receipt = try await outbox.keeping(
                    request,
                    within: command[.timeout] ?? configuration.timeouts.confirmation,
                    isDiscarded: { [session] in session.isDiscarded }
                ) { number in
                    terms.storedNumber = number
                    return try await send(publish, request, terms, isObserved)
                } goesOn: { number in
                    session.goesOn(with: number, qos)
                }
            } else {
                receipt = try await send(publish, request, terms, isObserved)
            }
            guard qos != .atMostOnce else { return receipt }
            events.reportSend(topic, byteCount: byteCount, qos: qos, nil, since: begun)
            return receipt
        } catch {
            events.reportSend(topic, byteCount: byteCount, qos: qos, error, since: begun)
            throw error
        }
    }

    private func send(
        _ publish: MQTTPublish,
        _ request: Request,
        _ terms: SendTerms,
        _ isObserved: Bool
    ) async throws -> Receipt {
        let isAcknowledged = publish.qos != .atMostOnce
        return try await lifecycle.requests.sending(isLasting: terms.isLasting) {
            guard !terms.command.isSet(.sentOnce),
                lifecycle.requests.queues(
                    isAcknowledged: isAcknowledged,
                    isLasting: terms.isLasting
                )
            else { return nil }
            return try await queued(publish, request, terms)
        } connection: {
            try await connector.connection(for: request) { () throws(WaybillError) in
                try check(publish, request)
            }
        } over: { connection in
            let now = lifecycle.clock.now
            return try await connection.publish(
                terms.packet(publish, at: now),
                request,
                timeout: terms.timeLeft(at: now),
                isObserved: isObserved,
                storedNumber: terms.storedNumber,
                isSentOnce: terms.command.isSet(.sentOnce),
                lastsUntil: terms.end
            )
        }
    }

    /// Publishes in the order of the calls, when there is a connection again, or one at last.
    private func queued(
        _ publish: MQTTPublish,
        _ request: Request,
        _ terms: SendTerms
    ) async throws -> Receipt {
        try check(publish, request)
        let clock = lifecycle.clock
        let answer: MQTTAnswer = try await lifecycle.requests.queued(
            request,
            timeout: terms.queueLimit(
                configuration.offline,
                acknowledgement: configuration.timeouts.confirmation,
                at: clock.now
            ),
            greeting: terms.isLasting ? connector.greeting(for: request) : nil,
            willSucceed: session.removal(of: terms.storedNumber),
            send: { connection, call throws(WaybillError) in
                let now = clock.now
                try connection.submit(
                    terms.packet(publish, at: now),
                    request,
                    timeout: terms.timeLeft(at: now),
                    call,
                    storedNumber: terms.storedNumber,
                    lastsUntil: terms.end
                )
            },
            withdraw: { [session] call in session.cancel(call) }
        )
        return try answer.receipt(of: request)
    }

    /// Refuses a message that cannot be sent, before a connection is made for it.
    func check(_ publish: MQTTPublish, _ request: Request) throws(WaybillError) {
        try MQTTPublishMapping.check(publish, request, version: version)
    }
}

extension EntryCommand {
    /// The timeout of a send, and whether it is sent once; a plain one is asked for no option.
    var sendLimits: (timeout: Duration?, isSentOnce: Bool) {
        isPlain ? (nil, false) : (self[.timeout], isSet(.sentOnce))
    }
}

extension SendTerms {
    /// The packet with the rest of its expiry; at least one second, because Mosquitto takes zero for no expiry.
    fileprivate func packet(_ publish: MQTTPublish, at now: WireInstant) -> MQTTPublish {
        guard let rest = expiryLeft(at: now) else { return publish }
        var publish = publish
        publish.properties.messageExpiryInterval = MQTTMapping.seconds(max(rest, .seconds(1)))
        return publish
    }
}
