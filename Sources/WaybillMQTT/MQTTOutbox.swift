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
struct MQTTOutbox: Sendable {
    private let store: any SessionStore
    private let version: MQTTVersion
    private let events: TransportEventSource

    init(_ store: any SessionStore, version: MQTTVersion, reportingTo events: TransportEventSource)
    {
        self.store = store
        self.version = version
        self.events = events
    }

    /// Sends with the message in the store.
    func keeping(
        _ request: Request,
        _ options: SendOptions,
        _ send: () async throws -> Receipt
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
            let receipt = try await send()
            store.remove(id)
            return receipt
        } catch let error as WaybillError where error.code == .shutDown {
            // The message stays in the store for the next transport.
            throw error
        } catch {
            store.remove(id)
            throw error
        }
    }

    /// Returns the stored sends of earlier transports, in order.
    func leftovers() -> [OfflineQueue<MQTTConnection>.Item] {
        guard let messages = try? store.messages() else { return [] }
        return messages.map { message in
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
        let call = MQTTStoredCall { [store] in store.remove(message.id) }
        do throws(WaybillError) {
            let (request, options) = try message.request(at: Date())
            let publish = try MQTTPublishMapping.packet(request, options, version: version)
            try connection.submit(publish, request, timeout: nil, call)
        } catch {
            guard error.code != .notConnected else { throw error }
            // The message can never be sent over such a connection. It would be tried again forever.
            call.didEnd()
            events.reportSend(
                message.topic,
                byteCount: message.body.count,
                qos: message.qos == 2 ? .exactlyOnce : .atLeastOnce,
                error,
                since: nil
            )
        }
    }

    func removeAll() {
        store.removeAll()
    }
}

/// A call without a waiting task, such as one of an earlier process.
final class MQTTStoredCall: MQTTCall {
    /// Called when the server has answered.
    let didEnd: @Sendable () -> Void

    init(didEnd: @escaping @Sendable () -> Void) {
        self.didEnd = didEnd
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

    /// Makes the request again, with the rest of its time.
    ///
    /// - Throws: `timedOut` if the message has expired.
    fileprivate func request(at now: Date) throws(WaybillError) -> (Request, SendOptions) {
        var fields = Headers()
        for pair in headers where pair.count == 2 { fields.append(name: pair[0], value: pair[1]) }
        var options = SendOptions(
            qos: qos == 2 ? .exactlyOnce : .atLeastOnce,
            retain: isRetained
        )
        if let expiry {
            let rest = expiry.timeIntervalSince(now)
            guard rest > 0 else {
                throw WaybillError(.timedOut, "the stored message has expired", topic: topic)
            }
            options.expiry = .seconds(max(1, rest))
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
