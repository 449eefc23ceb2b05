import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Sends messages: over the present connection, over one that it makes, or when a lost one is back.
struct MQTTSender: Sendable {
    let connector: MQTTConnector
    /// Stores messages until they are acknowledged; nil without a store.
    let outbox: MQTTOutbox?
    let replies: MQTTReplies
    /// Receives an event for each send.
    let events: TransportEventSource

    var lifecycle: ConnectionLifecycle<MQTTConnection> { connector.lifecycle }
    var version: MQTTVersion { connector.version }
    var configuration: MQTTConfiguration { connector.configuration }
    var session: MQTTSession { connector.session }

    /// Sends, and reports the result.
    func send(_ request: Request, _ options: SendOptions) async throws -> Receipt {
        let begun = events.timestamp
        let (topic, byteCount) = (request.topic, request.body.count)
        do {
            let publish = try MQTTPublishMapping.packet(request, options, version: version)
            if request.expectsReply { return try await reply(to: publish, request, options) }
            let isObserved = begun != nil
            let receipt: Receipt
            if let outbox, options.qos != .atMostOnce, !options.isSentOnce {
                receipt = try await outbox.keeping(
                    request,
                    options,
                    within: options.timeout ?? configuration.acknowledgementTimeout,
                    in: session
                ) { number in
                    try await send(publish, request, options, isObserved, storedNumber: number)
                }
            } else {
                receipt = try await send(publish, request, options, isObserved)
            }
            guard options.qos != .atMostOnce else { return receipt }
            events.reportSend(topic, byteCount: byteCount, qos: options.qos, nil, since: begun)
            return receipt
        } catch {
            events.reportSend(topic, byteCount: byteCount, qos: options.qos, error, since: begun)
            throw error
        }
    }

    private func send(
        _ publish: MQTTPublish,
        _ request: Request,
        _ options: SendOptions,
        _ isObserved: Bool,
        storedNumber: UInt64? = nil
    ) async throws -> Receipt {
        let isAcknowledged = publish.qos != .atMostOnce
        return try await lifecycle.requests.sending {
            guard !options.isSentOnce,
                lifecycle.requests.queues(isAcknowledged: isAcknowledged)
            else { return nil }
            return try await queued(publish, request, options, storedNumber)
        } connection: {
            try await connector.connection(for: request) { () throws(WaybillError) in
                try check(publish, request)
            }
        } over: { connection in
            try await connection.publish(
                publish,
                request,
                timeout: options.timeout,
                isObserved: isObserved,
                storedNumber: storedNumber,
                isSentOnce: options.isSentOnce
            )
        }
    }

    /// Publishes in the order of the calls, when the connection is back.
    private func queued(
        _ publish: MQTTPublish,
        _ request: Request,
        _ options: SendOptions,
        _ storedNumber: UInt64?
    ) async throws -> Receipt {
        try check(publish, request)
        let stated =
            configuration.offlineQueue.timeToLive ?? options.timeout
            ?? configuration.acknowledgementTimeout
        let answer: MQTTAnswer = try await lifecycle.requests.queued(
            request,
            timeout: min(stated, options.expiry ?? stated),
            willSucceed: session.removal(of: storedNumber),
            send: { connection, call throws(WaybillError) in
                try connection.submit(
                    publish,
                    request,
                    timeout: options.timeout,
                    call,
                    storedNumber: storedNumber
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
