import MQTTWire
import Waybill
import WaybillLink
import WaybillSession

/// Keeps sends in a store until their result is known.
struct MQTTOutbox: Sendable {
    /// The longest wait of a send that has failed, until its removal is written.
    private static let removalLimit = Duration.seconds(1)

    let store: any SessionStore
    let client: MQTTStoreClient
    /// The messages of an earlier process.
    let left: MQTTLeftMessages

    init(_ client: MQTTStoreClient, _ left: MQTTLeftMessages) {
        store = client.store
        self.client = client
        self.left = left
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
            if left.keepsExchanges, options.qos == .exactlyOnce {
                isOpen = session.adopt(id, MQTTStoredCall { [store] in store.remove(id) })
            } else {
                store.remove(id)
            }
            let isWritten = await client.flush(within: Self.removalLimit) == nil
            guard isOpen || !isWritten, let error = error as? WaybillError else { throw error }
            throw error.arriving(true)
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
