import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Where answers to requests arrive: one destination for all of them, subscribed to before the first request
/// goes over a connection.
///
/// | destination | RabbitMQ | other servers |
/// | --- | --- | --- |
/// | `/temp-queue/...` | subscribes by itself at the first `reply-to`, and refuses a SUBSCRIBE | SUBSCRIBE |
/// | any other | SUBSCRIBE | SUBSCRIBE |
///
/// The destination is also the id of the subscription, as RabbitMQ has it.
final class STOMPReplies: Sendable {
    private struct State: Sendable {
        /// The connection that has the subscription, or will have.
        var connection: ObjectIdentifier?
        /// Resolves once it has.
        var isReady = Promise<Void>()
    }

    let credentials: PendingReplies
    let destination: String
    private let state = Locked(State())

    /// Whether the destination goes with its connection.
    private let isTemporary: Bool

    init(configuration: STOMPConfiguration, environment: LinkEnvironment) {
        credentials = PendingReplies(in: environment)
        destination =
            configuration.replyDestination
            ?? "/temp-queue/waybill-"
            + environment.randomWords(2).map { String($0, radix: 36) }.joined()
        isTemporary = destination.hasBytePrefix("/temp-queue/")
    }

    /// Sees to it that answers arrive over a connection.
    /// - Throws: Why they do not.
    func prepare(over connection: STOMPConnection) async throws {
        let identifier = ObjectIdentifier(connection)
        let (isReady, isNew) = state.withLock { state -> (Promise<Void>, Bool) in
            guard state.connection != identifier else { return (state.isReady, false) }
            state = State(connection: identifier)
            return (state.isReady, true)
        }
        // For all who wait for it: one of them may be cancelled, the others go on.
        if isNew {
            Task { @concurrent in
                do {
                    try await self.subscribe(over: connection)
                    isReady.resolve(.success(()))
                } catch let error as WaybillError where error.code == .connectionLost {
                    // Who waits for it has sent nothing yet.
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
            // The server may have it all the same.
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

    /// Subscribes again, where answers may come that somebody still waits for.
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

    /// Lets go of a connection that is over, and of what only it could have answered.
    func detach(_ connection: STOMPConnection, _ cause: WaybillError?) {
        forget(connection)
        if isTemporary { credentials.fail(sentOver: connection, connection.abandonment(cause)) }
    }

    /// Ends what waits when no connection follows.
    func conclude(_ error: WaybillError) {
        credentials.fail(error)
    }

    /// Hands over a message that belongs to no subscription of the app's.
    func take(_ frame: STOMPFrame, of id: String) {
        guard id.hasSameBytes(as: destination) else { return }
        credentials.take(STOMPMapping.message(frame, isAcknowledged: false))
    }
}

extension STOMPConnection {
    /// Expects messages of a subscription that the server makes by itself.
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
    /// Sends a request, and waits for its answer.
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
