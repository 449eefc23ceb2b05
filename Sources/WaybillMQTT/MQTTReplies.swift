import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Where answers to requests arrive (MQTT 5, 4.10): one topic for all of them, subscribed to before the first
/// request goes.
///
/// The subscription is one like any other: a lost connection's successor has it again.
final class MQTTReplies: Sendable {
    private struct State: Sendable {
        /// Resolves with the topic once the server has granted it.
        var topic: Promise<String>?
    }

    let credentials: PendingReplies
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
        credentials = PendingReplies(in: environment)
        self.subscriptions = subscriptions
        prefix = configuration.replyTopicPrefix
        // One level of the topic, whatever it is made of.
        name = String(
            decoding: clientIdentifier.utf8.map { byte in
                "/+#\0".utf8.contains(byte) ? UInt8(ascii: "_") : byte
            },
            as: UTF8.self
        )
        // A server that keeps the session would keep the topics of earlier runs as well.
        let isLasting = configuration.keepsSession && configuration.clientIdentifier != nil
        ending =
            isLasting
            ? "" : "/" + environment.randomWords(2).map { String($0, radix: 36) }.joined()
    }

    /// The topic, unless the server says how it begins.
    var ownTopic: String { "\(prefix)/\(name)\(ending)" }

    /// The topic that answers go to, once the server has granted it.
    /// - Throws: Why it has not.
    func topic(over connection: MQTTConnection) async throws -> String {
        let (topic, isNew) = state.withLock { state -> (Promise<String>, Bool) in
            if let topic = state.topic { return (topic, false) }
            let topic = Promise<String>()
            state.topic = topic
            return (topic, true)
        }
        // For all who wait for it: one of them may be cancelled, the others go on.
        if isNew {
            Task { @concurrent [weak self] in await self?.listen(topic, over: connection) }
        }
        return try await topic.value()
    }

    private func listen(_ promise: Promise<String>, over connection: MQTTConnection) async {
        let given = connection.responseInformation.flatMap { $0.isEmpty ? nil : $0 }
        let topic = given.map { "\($0)/\(name)\(ending)" } ?? ownTopic
        let options = SubscribeOptions(
            qos: .atLeastOnce,
            retainHandling: .doNotSend,
            buffering: BufferPolicy(.dropOldest)
        )
        let request = Request(topic: topic, command: .subscribe(options))
        do {
            let messages = try await subscriptions.subscribe(
                MQTTMapping.subscriptions(request, options, version: .v5),
                request,
                options,
                over: connection
            )
            promise.resolve(.success(topic))
            for try await message in messages { credentials.take(message) }
            // Its end without an error is that of the connection, or of somebody who has unsubscribed.
            end(promise, MQTTMapping.unanswered(nil))
        } catch {
            let failure = (error as? WaybillError) ?? MQTTMapping.unanswered(nil)
            end(promise, failure)
            // Who waits for the topic has sent nothing yet.
            guard [.notConnected, .connectionLost].contains(failure.code) else {
                return promise.resolve(.failure(failure))
            }
            try? await connection.over()
            promise.resolve(.failure(Self.notSent(failure)))
        }
    }

    private static func notSent(_ cause: WaybillError) -> WaybillError {
        WaybillError(
            .notConnected,
            "the connection ended before the request was sent",
            peerReason: cause.peerReason,
            underlying: cause.underlying
        )
    }

    /// The next request begins anew; nobody who waits is answered any more.
    private func end(_ promise: Promise<String>, _ error: WaybillError) {
        let isPresent = state.withLock { state in
            guard state.topic === promise else { return false }
            state.topic = nil
            return true
        }
        if isPresent { credentials.fail(error) }
    }

    /// No longer listens: the end of the stream ends no request.
    func leaveTopic() {
        state.withLock { $0.topic = nil }
    }

    /// Ends it when no connection follows.
    func conclude(_ error: WaybillError) {
        leaveTopic()
        credentials.fail(error)
    }
}

extension MQTTEngine {
    /// Publishes a request, and waits for its answer.
    func reply(
        to publish: MQTTPublish,
        _ request: Request,
        _ options: SendOptions
    ) async throws -> Receipt {
        var sample = publish
        sample.properties.responseTopic = replies.ownTopic
        sample.properties.correlationData = []
        try check(sample, request)
        return try await replies.credentials.answer(
            to: request,
            within: options.timeout ?? configuration.replyTimeout
        ) { correlation in
            while true {
                let first = try await self.connection(for: request)
                do {
                    return try await self.send(publish, request, options, correlation, first)
                } catch let error as WaybillError where error.code == .notConnected {
                    // It came upon a connection that was just ending, and was not sent.
                    guard self.lifecycle.isAlive else { throw error }
                }
            }
        }
    }

    private func send(
        _ publish: MQTTPublish,
        _ request: Request,
        _ options: SendOptions,
        _ correlation: String,
        _ first: MQTTConnection
    ) async throws -> Receipt {
        var publish = publish
        publish.properties.responseTopic = try await replies.topic(over: first)
        publish.properties.correlationData = Array(correlation.utf8)
        // It may have a successor by now, which has the subscription, too.
        let connection = try await connection(for: request)
        replies.credentials.noteSent(correlation, over: connection)
        do {
            return try await connection.publish(
                publish,
                request,
                timeout: options.timeout,
                isObserved: events.isObserved
            )
        } catch let error as WaybillError where error.code == .notConnected {
            try await connection.over()
            throw error
        }
    }
}

extension MQTTMapping {
    /// Refuses what is in the way of an answer.
    static func checkReply(
        _ request: Request,
        _ options: SendOptions,
        version: MQTTVersion
    ) throws(WaybillError) {
        guard version == .v5 else { throw unsupported("replies to a send in 3.1.1", request) }
        guard options.responseTopic == nil, options.correlationData == nil else {
            throw WaybillError(
                .invalidEntry,
                "the answer is awaited here: response topic and correlation data are not an entry's to set"
            ).about(request)
        }
    }
}
