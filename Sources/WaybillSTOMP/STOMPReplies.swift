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

    /// The requests that wait for replies.
    let pending: PendingReplies
    let destination: String
    private let state = Locked(State())

    /// Whether the destination ends with its connection.
    private let isTemporary: Bool

    init(configuration: STOMPConfiguration, environment: LinkEnvironment) {
        pending = PendingReplies(in: environment)
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
        let isReady = state.withLock { state in
            if state.connection == identifier { return state.isReady }
            state = State(connection: identifier)
            // A separate task, because it serves all waiting requests, and one of them may be cancelled.
            state.isReady.resolve {
                do { try await self.subscribe(over: connection) } catch {
                    self.forget(connection)
                    // Requests that wait for the subscription have not been sent yet.
                    let loss = error as? WaybillError
                    throw loss?.code == .connectionLost ? STOMPMapping.notSent(loss) : error
                }
            }
            return state.isReady
        }
        try await isReady.value()
    }

    private func subscribe(over connection: STOMPConnection) async throws {
        let request = Request(topic: destination, command: .subscribe)
        if isTemporary, connection.answer?.server?.hasBytePrefix("RabbitMQ") == true {
            return try STOMPMapping.converting(request) { () throws(STOMPSendError) in
                try connection.driver.withCore { (core, _) throws(STOMPSendError) in
                    try core.expectSubscription(id: destination, destination: destination)
                }
            }
        }
        do {
            try await connection.subscribe(
                STOMPMapping.subscription(request),
                as: destination,
                request
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
        guard !isTemporary, pending.count > 0 else { return }
        do { try await prepare(over: connection) } catch let error as WaybillError
            where error.code == .rejected
        {
            pending.fail(error)
            throw STOMPMapping.lostByRefusal(error)
        }
    }

    /// Forgets a connection that is over, and fails the requests that only it could have answered.
    func detach(_ connection: STOMPConnection, _ error: WaybillError) {
        forget(connection)
        if isTemporary { pending.fail(sentOver: connection, error) }
    }

    /// Takes a message that belongs to no subscription of the app.
    ///
    /// - Parameters:
    ///   - frame: The message.
    ///   - id: The id of its subscription.
    ///   - limit: The limit that its body exceeds, so that the body was not kept.
    /// - Returns: Whether it came as a reply.
    @discardableResult
    func take(_ frame: STOMPFrame, of id: String, longerThan limit: Int? = nil) -> Bool {
        guard id.hasSameBytes(as: destination) else { return false }
        pending.take(STOMPMapping.message(frame, isAcknowledged: false), longerThan: limit)
        return true
    }
}

extension STOMPEngine {
    /// Sends a request, and waits for its reply.
    func reply(
        to send: STOMPSend,
        _ request: Request
    ) async throws -> Receipt {
        var send = send
        send.headers.append(STOMPMapping.replyTo, replies.destination)
        try STOMPMapping.check(send.headers, request)
        return try await replies.pending.answer(
            to: request,
            within: send.timeout ?? configuration.timeouts.reply
        ) { [send] correlation in
            var send = send
            send.headers.append(STOMPMapping.correlationID, correlation)
            return try await self.lifecycle.requests.sending(connection: {
                try await self.connection(for: request, sending: send.headers)
            }) { connection in
                try await self.replies.prepare(over: connection)
                self.replies.pending.noteSent(correlation, over: connection)
                return try await connection.send(
                    send,
                    request,
                    isObserved: self.events.isObserved
                )
            }
        }
    }
}
