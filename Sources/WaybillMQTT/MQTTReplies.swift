import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The response topic of a transport (MQTT 5, 4.10): one topic for all replies.
///
/// It is subscribed before the first request is sent. Like any other subscription, it is restored after a lost
/// connection.
final class MQTTReplies: Sendable {
    private struct State: Sendable {
        /// Resolves with the topic when the server has granted the subscription.
        var topic: Promise<String>?
    }

    let pending: PendingReplies
    private let state = Locked(State())
    private let subscriptions: MQTTSubscriptions
    private let prefix: String
    private let name: String
    private let ending: String

    init(
        configuration: MQTTConfiguration,
        clientIdentifier: String,
        subscriptions: MQTTSubscriptions,
        environment: LinkEnvironment
    ) {
        pending = PendingReplies(in: environment)
        self.subscriptions = subscriptions
        prefix = configuration.replies.topicPrefix
        // Replaces the characters that would split the topic level or make it a wildcard.
        name = String(
            decoding: clientIdentifier.utf8.map { byte in
                "/+#\0".utf8.contains(byte) ? UInt8(ascii: "_") : byte
            },
            as: UTF8.self
        )
        // A random ending would make a server that keeps the session keep the topics of earlier runs, too.
        let isLasting = configuration.keepsSession && configuration.clientIdentifier != nil
        ending =
            isLasting
            ? "" : "/" + environment.randomWords(2).map { String($0, radix: 36) }.joined()
    }

    /// The topic, unless the server has set the prefix.
    var ownTopic: String { "\(prefix)/\(name)\(ending)" }

    /// Returns the response topic, after the server has granted the subscription.
    ///
    /// - Throws: The error of the subscription.
    func topic(over connection: MQTTConnection) async throws -> String {
        let (topic, isNew) = state.withLock { state -> (Promise<String>, Bool) in
            if let topic = state.topic { return (topic, false) }
            let topic = Promise<String>()
            state.topic = topic
            return (topic, true)
        }
        // A separate task, because it serves all waiting requests, and one of them may be cancelled.
        if isNew {
            Task { @concurrent [weak self] in await self?.listen(topic, over: connection) }
        }
        return try await topic.value()
    }

    private func listen(_ promise: Promise<String>, over connection: MQTTConnection) async {
        let given = connection.responseInformation.flatMap { $0.isEmpty ? nil : $0 }
        let topic = given.map { "\($0)/\(name)\(ending)" } ?? ownTopic
        let command = EntryCommand.subscribe(
            qos: .atLeastOnce,
            .retainHandling(.doNotSend),
            .buffering(BufferPolicy(.dropOldest))
        )
        let request = Request(topic: topic, command: command)
        do {
            let messages = try await subscriptions.subscribe(
                MQTTSubscribeMapping.subscriptions(request, version: .v5),
                request,
                over: connection
            )
            promise.resolve(.success(topic))
            for try await message in messages { pending.take(message) }
            // An end without an error is the end of the connection, or an UNSUBSCRIBE of the app.
            end(promise, MQTTErrorMapping.unanswered(nil))
        } catch {
            let failure = (error as? WaybillError) ?? MQTTErrorMapping.unanswered(nil)
            end(promise, failure)
            // Requests that wait for the topic have not been sent yet.
            guard [.notConnected, .connectionLost].contains(failure.code) else {
                return promise.resolve(.failure(failure))
            }
            try? await connection.over()
            promise.resolve(.failure(Self.notSent(failure)))
        }
    }

    /// Fails the request whose reply was skipped, because the packet exceeds the limit.
    func noteSkipped(_ publish: MQTTPublish, limit: Int) {
        let topic = state.withLock { $0.topic }
        guard (try? topic?.result?.get()) == publish.topic else { return }
        pending.take(MQTTPublishMapping.message(publish), longerThan: limit)
    }

    private static func notSent(_ cause: WaybillError) -> WaybillError {
        WaybillError(
            .notConnected,
            "the connection ended before the request was sent",
            peerReason: cause.peerReason,
            underlying: cause.underlying
        )
    }

    /// Removes the topic, so that the next request subscribes again, and fails the waiting requests.
    private func end(_ promise: Promise<String>, _ error: WaybillError) {
        let isPresent = state.withLock { state in
            guard state.topic === promise else { return false }
            state.topic = nil
            return true
        }
        if isPresent { pending.fail(error) }
    }

    /// Removes the topic, so that the end of its messages fails no request.
    func leaveTopic() {
        state.withLock { $0.topic = nil }
    }

    /// Fails the waiting requests, when no connection follows.
    func conclude(_ error: WaybillError) {
        leaveTopic()
        pending.fail(error)
    }
}

extension MQTTSender {
    /// Publishes a request, and waits for its reply.
    func reply(
        to publish: MQTTPublish,
        _ request: Request
    ) async throws -> Receipt {
        var sample = publish
        sample.properties.responseTopic = replies.ownTopic
        sample.properties.correlationData = []
        try check(sample, request)
        return try await replies.pending.answer(
            to: request,
            within: request.command[.timeout] ?? configuration.timeouts.reply
        ) { correlation in
            while true {
                let first = try await connector.connection(for: request)
                do {
                    return try await send(publish, request, correlation, first)
                } catch let error as WaybillError where error.code == .notConnected {
                    // The connection was just ending, and nothing was sent.
                    try lifecycle.requests.checkReturn(after: error)
                }
            }
        }
    }

    private func send(
        _ publish: MQTTPublish,
        _ request: Request,
        _ correlation: String,
        _ first: MQTTConnection
    ) async throws -> Receipt {
        var publish = publish
        publish.properties.responseTopic = try await replies.topic(over: first)
        publish.properties.correlationData = Array(correlation.utf8)
        // A next connection may have replaced the first one in the meantime. It has the subscription, too.
        let connection = try await connector.connection(for: request)
        replies.pending.noteSent(correlation, over: connection)
        let limits = request.command.sendLimits
        do {
            let receipt = try await connection.publish(
                publish,
                request,
                timeout: limits.timeout,
                isObserved: events.isObserved,
                isSentOnce: limits.isSentOnce
            )
            let isUnheard =
                receipt.reason?.hasBytePrefix(MQTTReasonCode.noMatchingSubscribers.description)
                == true
            guard isUnheard, configuration.replies.failsWithoutSubscribers else { return receipt }
            throw WaybillError(
                .rejected,
                "the server knows no subscriber that could answer",
                peerReason: receipt.reason
            ).about(request)
        } catch let error as WaybillError where error.code == .notConnected {
            try await connection.over()
            throw error
        }
    }
}
