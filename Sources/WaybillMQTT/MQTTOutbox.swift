import MQTTWire
import Waybill
import WaybillSession
import WireCore

/// Keeps sends in a store until their result is known.
struct MQTTOutbox: Sendable {
    private let store: any SessionStore
    private let version: MQTTVersion

    init(_ store: any SessionStore, version: MQTTVersion) {
        self.store = store
        self.version = version
    }

    /// Sends with the message in the store.
    func keeping(
        _ request: Request,
        _ options: SendOptions,
        _ send: () async throws -> Receipt
    ) async throws -> Receipt {
        let id: StoredMessage.ID
        do {
            id = try store.insert(StoredMessage(request, options))
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
        return messages.compactMap { message in
            let (request, options) = message.request
            guard let publish = try? MQTTPublishMapping.packet(request, options, version: version)
            else {
                store.remove(message.id)
                return nil
            }
            let call = MQTTStoredCall { [store] in store.remove(message.id) }
            return .init(
                byteCount: message.body.count,
                timeout: nil,
                send: { connection throws(WaybillError) in
                    do throws(WaybillError) {
                        try connection.submit(publish, request, timeout: nil, call)
                    } catch {
                        guard error.code != .notConnected else { throw error }
                        // The message can never be sent over such a connection. It would be tried again forever.
                        call.didEnd()
                    }
                },
                fail: { _ in }
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
            isRetained: options.retain
        )
    }

    fileprivate var request: (Request, SendOptions) {
        var fields = Headers()
        for pair in headers where pair.count == 2 { fields.append(name: pair[0], value: pair[1]) }
        let options = SendOptions(
            qos: qos == 2 ? .exactlyOnce : .atLeastOnce,
            retain: isRetained
        )
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
