import MQTTWire
import Waybill
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

    let store: any SessionStore
    /// Whether the packet identifiers of messages follow from their numbers in the store.
    private(set) var keepsExchanges = false
    private let version: MQTTVersion
    private let events: TransportEventSource

    init(_ store: any SessionStore, version: MQTTVersion, reportingTo events: TransportEventSource)
    {
        self.store = store
        self.version = version
        self.events = events
    }

    /// Sends with the message in the store.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - options: The options of its command.
    ///   - session: Has the exchange of the message.
    ///   - send: Sends it, with its number if its packet identifier follows from that.
    /// - Returns: The receipt.
    /// - Throws: `limitExceeded` if the message could not be stored; the errors of `send`.
    func keeping(
        _ request: Request,
        _ options: SendOptions,
        in session: MQTTSession,
        _ send: (_ storedNumber: UInt64?) async throws -> Receipt
    ) async throws -> Receipt {
        let id: StoredMessage.ID
        do {
            id = try await store.add(StoredMessage(request, options))
        } catch {
            throw WaybillError(
                .limitExceeded,
                "the message could not be stored: nothing was sent",
                underlying: error
            ).about(request)
        }
        do {
            let receipt = try await send(keepsExchanges ? id : nil)
            store.remove(id)
            return receipt
        } catch let error as WaybillError where error.code == .shutDown {
            // The message stays in the store for the next transport.
            if session.isDiscarded { store.remove(id) }
            throw error
        } catch {
            if keepsExchanges, options.qos == .exactlyOnce {
                session.adopt(id, MQTTStoredCall { [store] in store.remove(id) })
            } else {
                store.remove(id)
            }
            throw error
        }
    }

    /// Begins or continues the session whose exchanges are stored.
    ///
    /// - Parameter clientIdentifier: The client identifier.
    /// - Returns: The state at the end of the last transport; nil if the store keeps no exchanges.
    /// - Throws: `limitExceeded`, if the store cannot be read: messages would be lost, or arrive twice.
    mutating func restoredSession(
        _ clientIdentifier: String
    ) throws(WaybillError) -> MQTTSessionState? {
        guard try Self.reading({ try store.beginSession(clientIdentifier) }) else { return nil }
        keepsExchanges = true
        var session = MQTTSessionState(
            received: try Self.reading { try store.receivedIdentifiers() }
        )
        let now = Date()
        for message in try Self.reading({ try store.messages() }) {
            var isReleased = message.stage == .released && message.qos == 2
            var call = call(of: message)
            if !isReleased, message.qos == 2, message.hasExpired(at: now),
                session.isFree(message.id)
            {
                // The server may have it: PUBREL ends that exchange. A server without it only answers.
                isReleased = true
                report(message, message.expiryError)
                call = MQTTStoredCall { [store] in store.remove(message.id) }
            }
            do throws(WaybillError) {
                // The exchange of a released message ends without sending it.
                var message = message
                if isReleased { message.expiry = nil }
                let (request, options) = try message.request(at: now)
                let publish = try MQTTPublishMapping.packet(request, options, version: version)
                try MQTTPublishMapping.check(publish, request, version: version)
                let outgoing = MQTTOutgoingMessage(
                    publish: publish,
                    payload: request.body,
                    storedNumber: message.id,
                    isSentAnew: true
                )
                let ended = session.restore(outgoing, isReleased: isReleased, call: call)
                (ended as? MQTTStoredCall)?.didEnd()
            } catch {
                drop(message, call, error)
            }
        }
        return session
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
    func leftovers() throws(WaybillError) -> [OfflineQueue<MQTTConnection>.Item] {
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
                storedNumber: keepsExchanges ? message.id : nil,
                isSentAnew: true
            )
        } catch {
            guard error.code != .notConnected else { throw error }
            // It would be tried again forever.
            drop(message, call, error)
        }
    }

    func removeAll() {
        store.removeAll()
    }
}

/// A call without a waiting task, such as one of an earlier process.
package final class MQTTStoredCall: MQTTCall {
    typealias Drop = @Sendable (MQTTStoredCall, MQTTDroppedMessage) -> Void

    /// Called when the server has answered.
    let didEnd: @Sendable () -> Void
    /// Called after it with the answer to a message.
    private let didAnswer: (@Sendable (MQTTReasonCode, MQTTProperties) -> Void)?
    /// Called when the message was dropped as the session was resumed.
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

    /// Notes that the message was dropped as the session was resumed.
    func drop(_ message: MQTTDroppedMessage) {
        guard let didDrop else { return didEnd() }
        didDrop(self, message)
    }
}

extension StoredMessage {
    fileprivate init(_ request: Request, _ options: SendOptions) {
        self.init(
            topic: request.topic ?? "",
            body: request.body.bytes,
            contentType: request.contentType,
            headers: request.headers.map { [$0.name, $0.value] },
            qos: options.qos == .exactlyOnce ? 2 : 1,
            isRetained: options.retain,
            expiry: options.expiry.map { Date() + $0 / .seconds(1) }
        )
    }

    fileprivate func hasExpired(at now: Date) -> Bool { expiry.map { $0 <= now } ?? false }

    fileprivate var expiryError: WaybillError {
        WaybillError(.timedOut, "the stored message has expired", topic: topic)
    }

    /// The options of the send, without its expiry.
    fileprivate var options: SendOptions {
        SendOptions(qos: qos == 2 ? .exactlyOnce : .atLeastOnce, retain: isRetained)
    }

    /// Makes the request again, with the rest of its time.
    ///
    /// - Throws: `timedOut` if the message has expired.
    fileprivate func request(at now: Date) throws(WaybillError) -> (Request, SendOptions) {
        var fields = Headers()
        for pair in headers where pair.count == 2 { fields.append(name: pair[0], value: pair[1]) }
        var options = options
        if let expiry {
            let rest = expiry.timeIntervalSince(now)
            guard rest > 0 else { throw expiryError }
            // A store may return any date; a century is as good as a million years.
            options.expiry = .seconds(min(max(1, rest), Double(UInt32.max)))
        }
        let request = Request(
            topic: topic,
            command: .send(options),
            body: Payload(body),
            contentType: contentType,
            headers: fields
        )
        return (request, options)
    }
}
