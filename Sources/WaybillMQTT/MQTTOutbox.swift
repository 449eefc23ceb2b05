import MQTTWire
import Waybill
import WaybillLink
import WaybillSession
import WireCore

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Keeps sends in a store until their result is known.
///
/// With a session that the server keeps, too, the store has the exchanges, and a later process continues them
/// (``restoredSession(_:)``). Otherwise a later process sends the messages as new ones (``leftovers()``).
struct MQTTOutbox: Sendable {
    /// A timeout that never ends: no task waits for the messages of an earlier process.
    private static let never = Duration.seconds(Int64.max)

    /// What the outbox does with the first connection.
    typealias Leftover = OfflineQueue<MQTTConnection>.Item

    /// The longest wait of a send that has failed, until its removal is written.
    private static let removalLimit = Duration.seconds(1)

    let store: any SessionStore
    let client: MQTTStoreClient
    /// Whether the packet identifiers of messages follow from their numbers in the store.
    private(set) var keepsExchanges = false
    private let version: MQTTVersion
    private let events: TransportEventSource

    init(
        _ store: any SessionStore,
        by clock: any TimerSource,
        _ policy: OfflineQueuePolicy,
        version: MQTTVersion,
        reportingTo events: TransportEventSource
    ) {
        self.store = store
        client = MQTTStoreClient(store, by: clock, policy)
        self.version = version
        self.events = events
    }

    /// Sends with the message in the store.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - options: The options of its command.
    ///   - limit: The longest wait for the store.
    ///   - session: Has the exchange of the message.
    ///   - send: Sends it, with its number in the store.
    /// - Returns: The receipt.
    /// - Throws: The errors of ``MQTTStoreClient/add(_:within:isDiscarded:)`` and of `send`, after the removal of the
    ///   message is written. If it could not be written, or if the message is sent again, the error says that it may arrive.
    func keeping(
        _ request: Request,
        _ options: SendOptions,
        within limit: Duration,
        in session: MQTTSession,
        _ send: (_ storedNumber: UInt64) async throws -> Receipt
    ) async throws -> Receipt {
        let id: StoredMessage.ID
        do {
            id = try await client.add(
                StoredMessage(request, options),
                within: min(limit, options.expiry ?? limit),
                isDiscarded: { session.isDiscarded }
            )
        } catch let error as WaybillError {
            throw error.about(request)
        }
        do {
            // Removed when the answer comes, before this task runs again.
            return try await send(id)
        } catch let error as WaybillError where error.code == .shutDown {
            // The message stays in the store for the next transport.
            if session.isDiscarded { store.remove(id) }
            throw error.arriving(true)
        } catch {
            var isOpen = false
            if keepsExchanges, options.qos == .exactlyOnce {
                isOpen = session.adopt(id, MQTTStoredCall { [store] in store.remove(id) })
            } else {
                store.remove(id)
            }
            let isWritten = await client.flush(within: Self.removalLimit) == nil
            guard isOpen || !isWritten, let error = error as? WaybillError else { throw error }
            throw error.arriving(true)
        }
    }

    /// Begins or continues the session whose exchanges are stored.
    ///
    /// - Parameter clientIdentifier: The client identifier.
    /// - Returns: The state at the end of the last transport, and what the first connection has to report; nil if the store
    ///   keeps no exchanges.
    /// - Throws: `limitExceeded`, if the store cannot be read: messages would be lost, or arrive twice.
    mutating func restoredSession(
        _ clientIdentifier: String
    ) throws(WaybillError) -> (session: MQTTSessionState, leftovers: [Leftover])? {
        guard try Self.reading({ try store.beginSession(clientIdentifier) }) else { return nil }
        keepsExchanges = true
        var session = MQTTSessionState(
            received: try Self.reading { try store.receivedIdentifiers() }
        )
        let messages = try Self.reading { try store.messages() }
        let now = Date()
        var failures: [(message: StoredMessage, call: MQTTStoredCall?, error: WaybillError)] = []
        for message in messages {
            var call = call(of: message)
            var isReleased = message.stage == .released && message.qos == 2
            var sent: MQTTOutgoingMessage?
            do throws(WaybillError) {
                if !isReleased { sent = try outgoing(message, at: now) }
            } catch {
                // The server may have it: PUBREL ends that exchange. A server without it only answers.
                isReleased = message.qos == 2 && session.isFree(message.id)
                failures.append((message, isReleased ? nil : call, error))
                guard isReleased else { continue }
                call = MQTTStoredCall { [store] in store.remove(message.id) }
            }
            let restored = sent ?? released(message)
            let ended = session.restore(restored, isReleased: isReleased, call: call)
            (ended as? MQTTStoredCall)?.didEnd()
        }
        guard !failures.isEmpty else { return (session, []) }
        // With the first connection, because nothing can observe a transport that is being made.
        let reports = Leftover(
            byteCount: 0,
            timeout: nil,
            send: { [self, failures] _ throws(WaybillError) in
                for (message, call, error) in failures {
                    call?.didEnd()
                    report(message, error)
                }
            },
            fail: { _ in }
        )
        return (session, [reports])
    }

    /// Makes the packet of a message that is sent again.
    ///
    /// - Throws: `unsupported`, `invalidEntry`, `limitExceeded`; `timedOut` if the message has expired.
    private func outgoing(
        _ message: StoredMessage,
        at now: Date
    ) throws(WaybillError) -> MQTTOutgoingMessage {
        let (request, options) = try message.request(at: now)
        let publish = try MQTTPublishMapping.packet(request, options, version: version)
        try MQTTPublishMapping.check(publish, request, version: version)
        return MQTTOutgoingMessage(
            publish: publish,
            payload: request.body,
            storedNumber: message.id,
            isSentAnew: true,
            suspicion: ReplaySuspicion.Record(ends: message.suspiciousEnds)
        )
    }

    /// Makes the packet of a message whose exchange ends with PUBREL.
    ///
    /// It is not sent, so it needs nothing that a version of MQTT or a check could refuse.
    private func released(_ message: StoredMessage) -> MQTTOutgoingMessage {
        MQTTOutgoingMessage(
            publish: MQTTPublish(topic: message.topic, qos: .exactlyOnce),
            payload: Payload(),
            storedNumber: message.id,
            isSentAnew: true
        )
    }

    /// Reads from a store.
    ///
    /// - Throws: `limitExceeded`, with the store's error as `underlying`.
    static func reading<Value>(_ body: () throws -> Value) throws(WaybillError) -> Value {
        do {
            return try body()
        } catch {
            throw WaybillError(
                .limitExceeded,
                "the store could not be read: no transport was made",
                underlying: error
            )
        }
    }

    /// Makes the call of a message that no task waits for.
    private func call(of message: StoredMessage) -> MQTTStoredCall {
        MQTTStoredCall { [store] in
            store.remove(message.id)
        } didAnswer: { code, properties in
            let request = Request(topic: message.topic, command: .send(message.options))
            do throws(WaybillError) {
                _ = try MQTTErrorMapping.receipt(request, code, properties)
                report(message, nil)
            } catch {
                report(message, error)
            }
        } didDrop: { call, dropped in
            drop(message, call, MQTTErrorMapping.error(dropped.cause))
        }
    }

    /// Gives up a message that can never be sent.
    private func drop(_ message: StoredMessage, _ call: MQTTStoredCall, _ error: WaybillError) {
        call.didEnd()
        report(message, error)
    }

    /// Reports how the send of an earlier process has ended.
    private func report(_ message: StoredMessage, _ error: WaybillError?) {
        events.reportSend(
            message.topic,
            byteCount: message.body.count,
            qos: message.options.qos,
            error,
            since: nil
        )
    }

    /// Returns the stored sends of earlier transports, in order.
    ///
    /// - Throws: `limitExceeded`, if the store cannot be read.
    func leftovers() throws(WaybillError) -> [Leftover] {
        try Self.reading { try store.messages() }.map { message in
            .init(
                topic: message.topic,
                byteCount: message.body.count,
                timeout: nil,
                send: { connection throws(WaybillError) in try send(message, over: connection) },
                fail: { _ in }
            )
        }
    }

    /// Sends a message of an earlier transport, unless it has expired meanwhile.
    private func send(
        _ message: StoredMessage,
        over connection: MQTTConnection
    ) throws(WaybillError) {
        let call = call(of: message)
        do throws(WaybillError) {
            let (request, options) = try message.request(at: Date())
            let publish = try MQTTPublishMapping.packet(request, options, version: version)
            try connection.submit(
                publish,
                request,
                timeout: Self.never,
                call,
                storedNumber: message.id,
                isSentAnew: true,
                suspicion: ReplaySuspicion.Record(ends: message.suspiciousEnds)
            )
        } catch {
            guard error.code != .notConnected else { throw error }
            // It would be tried again forever.
            drop(message, call, error)
        }
    }

    // MARK: The end

    /// Ends the sends that wait for the store.
    func shutDown() {
        client.shutDown()
    }

    /// Empties the store, and waits for that, at most for the timeout.
    func removeAll(within timeout: Duration) async {
        await client.removeAll(within: timeout)
    }
}

/// A call without a waiting task, such as one of an earlier process.
package final class MQTTStoredCall: MQTTCall {
    typealias Drop = @Sendable (MQTTStoredCall, MQTTDroppedMessage) -> Void

    /// Called when the server has answered.
    let didEnd: @Sendable () -> Void
    /// Called after it with the answer to a message.
    private let didAnswer: (@Sendable (MQTTReasonCode, MQTTProperties) -> Void)?
    /// Called when the message was dropped.
    private let didDrop: Drop?

    init(
        didEnd: @escaping @Sendable () -> Void,
        didAnswer: (@Sendable (MQTTReasonCode, MQTTProperties) -> Void)? = nil,
        didDrop: Drop? = nil
    ) {
        self.didEnd = didEnd
        self.didAnswer = didAnswer
        self.didDrop = didDrop
    }

    /// Notes that the server has the message, or has refused it.
    func answer(_ code: MQTTReasonCode, _ properties: MQTTProperties) {
        didEnd()
        didAnswer?(code, properties)
    }

    /// Notes that the message was dropped.
    ///
    /// - Returns: Whether that was reported.
    @discardableResult
    func drop(_ message: MQTTDroppedMessage) -> Bool {
        guard let didDrop else {
            didEnd()
            return false
        }
        didDrop(self, message)
        return true
    }
}
