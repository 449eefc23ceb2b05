import STOMPWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

/// Sends what an earlier process has left in the store, before anything else.
///
/// STOMP has no session, so each message is a new one. No task waits for it.
///
/// | a message | then |
/// | --- | --- |
/// | RECEIPT | removed from the store, and reported |
/// | ERROR that names its receipt or its destination, or it cannot be sent | given up, and reported |
/// | an interceptor fails | waits for the next connection, and is reported |
/// | it has an option that this process does not know, or that no interceptor takes out | waits for a process that knows it, and is reported once |
/// | the connection ends before the answer | the next connection sends it again |
/// | the server ends connections after it (``WireCore/ReplaySuspicion``) | it is sent alone, and then given up |
final class STOMPLeftMessages: Sendable {
    private struct State: Sendable {
        /// The connection that the messages were sent over.
        var connection: ObjectIdentifier?
        /// The messages without an answer.
        var sent: [StoredMessage.ID: StoredMessage] = [:]
        var suspicion = ReplaySuspicion()
        /// Resolves when the message that is sent alone has its answer, or when the connection has ended.
        var isAnswered: Promise<Void>?
    }

    private let left: LeftMessages
    private let state = Locked(State())

    /// Reads the store.
    ///
    /// - Throws: `limitExceeded`, if the store cannot be read: messages would be lost.
    init(
        _ store: any SessionStore,
        reportingTo events: TransportEventSource
    ) throws(WaybillError) {
        left = LeftMessages(
            try LeftMessages.reading { try store.messages() },
            of: store,
            hasQualities: false,
            knowing: OptionName.stored,
            reportingTo: events
        )
    }

    // MARK: Sending

    /// Sends the messages over a connection that is not handed over to requests yet.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - chain: The interceptors of its provider; nil without any.
    /// - Throws: `notConnected` if the connection is over; `CancellationError`.
    func send(over connection: STOMPConnection, _ chain: RequestChain?) async throws {
        let configuration = connection.configuration
        let prepared = try await left.prepare(chain) {
            (_, request) throws(WaybillError) in
            let send = try STOMPMapping.send(request, configuration)
            try STOMPMapping.check(send.headers, request)
            return send
        }
        for item in prepared { try await send(item, over: connection) }
    }

    private func send(
        _ item: LeftMessages.Prepared<STOMPSend>,
        over connection: STOMPConnection
    ) async throws {
        let message = item.message
        let request = item.request ?? Request(topic: message.topic, command: .send)
        let (isAnswered, waits): (Promise<Void>?, Bool)
        do throws(WaybillError) {
            let send = try item.packet.get()
            (isAnswered, waits) = try STOMPMapping.converting(request) {
                () throws(STOMPSendError) in
                try connection.driver.withCore { (core, now) throws(STOMPSendError) in
                    let waits = try core.send(
                        send.headers,
                        body: request.body,
                        call: STOMPLeftCall { [self] in end(message.id, $0) },
                        isRequired: send.receipt == .required,
                        hasLength: send.hasLength,
                        timeout: .seconds(Int64.max),
                        at: now
                    )
                    left.reportSent(message, request)
                    // With the core's lock held, so that the answer and the end of the connection come after it.
                    return (note(message, sentOver: connection, at: now), waits)
                }
            }
        } catch {
            guard error.code != .notConnected else { throw error }
            left.take([message.id])
            return left.end(message, error)
        }
        // What the socket does not take waits in the store. The end of the connection takes the message back.
        do { try await connection.driver.waitUntilDrained() } catch is LinkError { return }
        if !waits { end(message.id, nil) }
        guard let isAnswered else { return }
        let limit = ReplaySuspicion.limit
        let deadline = connection.now.advanced(by: limit)
        if try await isAnswered.value(within: limit, by: connection.timers) == nil {
            endIsolation(of: message, at: max(connection.now, deadline))
        }
    }

    /// Notes a message that was sent.
    ///
    /// - Returns: Resolves when the next message may be sent; nil if it may be sent now.
    private func note(
        _ message: StoredMessage,
        sentOver connection: STOMPConnection,
        at now: WireInstant
    ) -> Promise<Void>? {
        left.take([message.id])
        return state.withLock { state in
            let isOldest = state.sent.isEmpty
            state.connection = ObjectIdentifier(connection)
            state.sent[message.id] = message
            let record = ReplaySuspicion.Record(ends: message.suspiciousEnds)
            state.suspicion.noteWritten(message.item, record, isOldest: isOldest)
            state.suspicion.noteGiven(isRest: false, at: now)
            if state.suspicion.isIsolating { state.isAnswered = Promise() }
            return state.isAnswered
        }
    }

    private func endIsolation(of message: StoredMessage, at now: WireInstant) {
        let hasOutlived = state.withLock { state in
            state.isAnswered = nil
            guard state.suspicion.endIsolation(at: now) != nil else { return false }
            state.sent[message.id]?.suspiciousEnds = 0
            return true
        }
        if hasOutlived { left.store.setSuspiciousEnds(0, of: message.id) }
    }

    // MARK: Answers

    /// Ends the send of a message.
    ///
    /// - Parameters:
    ///   - id: The message.
    ///   - error: The server's refusal; nil after RECEIPT.
    private func end(_ id: StoredMessage.ID, _ error: WaybillError?) {
        let (message, isAnswered) = state.withLock { state in
            let message = state.sent.removeValue(forKey: id)
            state.suspicion.noteAcknowledged(hasItems: !state.sent.isEmpty)
            return (message, state.isAnswered.take())
        }
        if let message { left.end(message, error) }
        isAnswered?.resolve(.success(()))
    }

    /// Takes the messages back from a connection that is over.
    ///
    /// - Parameters:
    ///   - connection: The connection.
    ///   - end: Why it has ended.
    func detach(_ connection: STOMPConnection, _ end: ReplaySuspicion.End) {
        let (over, verdict) = state.withLock { state -> (State, ReplaySuspicion.Verdict) in
            guard state.connection == ObjectIdentifier(connection) else { return (State(), .none) }
            let verdict = state.suspicion.noteEnd(end, at: connection.now)
            defer { state = State() }
            return (state, verdict)
        }
        var messages = Array(over.sent.values)
        switch verdict {
        case .none, .unclear: break
        case .recorded(let item, let record):
            for index in messages.indices where messages[index].item == item {
                messages[index].suspiciousEnds = Int(record.ends)
                left.store.setSuspiciousEnds(Int(record.ends), of: messages[index].id)
            }
        case .proven(let item, let ends):
            for message in messages where message.item == item {
                left.end(message, .rejectedMessage(afterEnds: ends).arriving(true))
            }
            messages.removeAll { $0.item == item }
        }
        left.putBack(messages)
        over.isAnswered?.resolve(.success(()))
    }
}

/// The call of a message that no task waits for.
final class STOMPLeftCall: STOMPCall {
    /// Called with the server's refusal, and with nil after RECEIPT.
    let end: @Sendable (WaybillError?) -> Void

    init(_ end: @escaping @Sendable (WaybillError?) -> Void) {
        self.end = end
    }
}

extension StoredMessage {
    /// Identifies the message on one connection.
    fileprivate var item: UInt32 { UInt32(truncatingIfNeeded: id) }
}
