import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// The reply destination of a transport: one for all replies, subscribed before the first request over a connection.
///
/// | destination | RabbitMQ | other servers |
/// | --- | --- | --- |
/// | `/temp-queue/...` | subscribes itself at the first `reply-to`, and refuses a SUBSCRIBE | SUBSCRIBE |
/// | any other | SUBSCRIBE | SUBSCRIBE |
///
/// The destination is also the id of the subscription, as in RabbitMQ.
final class STOMPReplies: Sendable {
    private struct State: Sendable {
        /// The connection that has the subscription, or is getting it.
        var connection: ObjectIdentifier?
        /// Resolves when the connection has the subscription.
        var isReady = Promise<Void>()
    }

    let credentials: PendingReplies
    let destination: String
    private let state = Locked(State())

    /// Whether the destination ends with its connection.
    private let isTemporary: Bool

    init(configuration: STOMPConfiguration, environment: LinkEnvironment) {
        credentials = PendingReplies(in: environment)
        destination =
            configuration.replyDestination
            ?? "/temp-queue/waybill-"
            + environment.randomWords(2).map { String($0, radix: 36) }.joined()
        isTemporary = destination.hasBytePrefix("/temp-queue/")
    }

    /// Makes replies arrive over a connection: subscribes unless the connection has the subscription.
    ///
    /// - Throws: The error of the subscription.
    func prepare(over connection: STOMPConnection) async throws {
        let identifier = ObjectIdentifier(connection)
        let (isReady, isNew) = state.withLock { state -> (Promise<Void>, Bool) in
            guard state.connection != identifier else { return (state.isReady, false) }
            state = State(connection: identifier)
            return (state.isReady, true)
        }
        // A separate task, because it serves all waiting requests, and one of them may be cancelled.
        if isNew {
            Task { @concurrent in
                do {
                    try await self.subscribe(over: connection)
                    isReady.resolve(.success(()))
                } catch let error as WaybillError where error.code == .connectionLost {
                    // Requests that wait for the subscription have not been sent yet.
                    self.forget(connection)
                    isReady.resolve(
                        .failure(
                            WaybillError(
                                .notConnected,
                                "the connection ended before the request was sent",
                                peerReason: error.peerReason,
                                underlying: error.underlying
                            )
                        )
                    )
                } catch {
                    self.forget(connection)
                    isReady.resolve(.failure(error))
                }
            }
        }
        try await isReady.value()
    }

    private func subscribe(over connection: STOMPConnection) async throws {
        let options = SubscribeOptions()
        let request = Request(topic: destination, command: .subscribe(options))
        if isTemporary, connection.server?.hasBytePrefix("RabbitMQ") == true {
            return try connection.expectSubscription(destination, request)
        }
        do {
            try await connection.subscribe(
                STOMPMapping.subscription(request, options),
                as: destination,
                request,
                options
            )
        } catch {
            // The server may have the subscription in spite of the error.
            connection.leave(destination)
            throw error
        }
    }

    private func forget(_ connection: STOMPConnection) {
        let identifier = ObjectIdentifier(connection)
        state.withLock { state in
            if state.connection == identifier { state.connection = nil }
        }
    }

    /// Subscribes again, if replies may arrive for waiting requests.
    func resume(over connection: STOMPConnection) async throws {
        guard !isTemporary, credentials.count > 0 else { return }
        do { try await prepare(over: connection) } catch let error as WaybillError
            where error.code == .rejected
        {
            credentials.fail(error)
            throw WaybillError(
                .connectionLost,
                "the server refused a subscription and ended the connection",
                peerReason: error.peerReason,
                underlying: error
            )
        }
    }

    /// Forgets a connection that is over, and fails the requests that only it could have answered.
    func detach(_ connection: STOMPConnection, _ cause: WaybillError?) {
        forget(connection)
        if isTemporary { credentials.fail(sentOver: connection, connection.abandonment(cause)) }
    }

    /// Fails the waiting requests, when no connection follows.
    func conclude(_ error: WaybillError) {
        credentials.fail(error)
    }

    /// Takes a message that belongs to no subscription of the app.
    func take(_ frame: STOMPFrame, of id: String) {
        guard id.hasSameBytes(as: destination) else { return }
        credentials.take(STOMPMapping.message(frame, isAcknowledged: false))
    }
}

extension STOMPConnection {
    /// Expects messages of a subscription that the server makes itself.
    func expectSubscription(_ id: String, _ request: Request) throws(WaybillError) {
        do throws(STOMPSendError) {
            try driver.withCore { (core, _) throws(STOMPSendError) in
                try core.expectSubscription(id: id, destination: id)
            }
        } catch {
            throw STOMPMapping.error(error, request)
        }
    }
}

extension STOMPEngine {
    /// Sends a request, and waits for its reply.
    func reply(
        to headers: STOMPHeaders,
        _ request: Request,
        _ options: SendOptions
    ) async throws -> Receipt {
        var sample = headers
        sample.append(STOMPMapping.replyTo, replies.destination)
        try STOMPMapping.check(sample, request)
        let asks = STOMPMapping.asksForReceipt(options, headers, configuration)
        return try await replies.credentials.answer(
            to: request,
            within: options.timeout ?? configuration.replyTimeout
        ) { correlation in
            var headers = headers
            headers.append(STOMPMapping.replyTo, self.replies.destination)
            headers.append(STOMPMapping.correlationID, correlation)
            return try await self.lifecycle.requests.sending(connection: {
                try await self.connection(for: request, sending: headers)
            }) { connection in
                try await self.replies.prepare(over: connection)
                self.replies.credentials.noteSent(correlation, over: connection)
                return try await connection.send(
                    headers,
                    request,
                    options,
                    asksForReceipt: asks,
                    isObserved: self.events.isObserved
                )
            }
        }
    }
}
