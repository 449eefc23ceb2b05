package import Waybill
import WaybillLink

/// Keeps sends in a store until their result is known.
package struct Outbox: Sendable {
    /// The longest wait of a send that has failed, until its removal is written.
    private static let removalLimit = Duration.seconds(1)

    package let client: StoreClient
    package var store: any SessionStore { client.store }

    package init(_ client: StoreClient) {
        self.client = client
    }

    /// Sends with the message in the store.
    ///
    /// The sender removes the message when the peer has acknowledged it, before the waiting task learns of that
    /// (``StoreClient/removal(of:)``).
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - limit: The longest wait for the store.
    ///   - isDiscarded: Whether no message stays stored.
    ///   - send: Sends it, with its number in the store.
    ///   - goesOn: Whether the exchange of a failed send goes on with its message in the store; nil if none does.
    /// - Returns: The receipt.
    /// - Throws: The errors of options that cannot be stored, and of ``StoreClient/add(_:within:isDiscarded:)``; those of
    ///   `send`, after the removal of the message is written. If it could not be written, or if the message is sent again, the
    ///   error says that it may arrive.
    package func keeping(
        _ request: Request,
        within limit: Duration,
        isDiscarded: @escaping @Sendable () -> Bool = { false },
        _ send: (_ storedNumber: UInt64) async throws -> Receipt,
        goesOn: ((_ storedNumber: UInt64) -> Bool)? = nil
    ) async throws -> Receipt {
        let id: StoredMessage.ID
        do {
            id = try await client.add(
                try StoredMessage(request),
                within: min(limit, request.command[.storedExpiry] ?? limit),
                isDiscarded: isDiscarded
            )
        } catch let error as WaybillError {
            throw error.about(request)
        }
        do {
            return try await send(id)
        } catch let error as WaybillError where error.code == .shutDown {
            // The message stays in the store for the next transport.
            if isDiscarded() { store.remove(id) }
            throw error.arriving(true)
        } catch {
            let isOpen = goesOn?(id) ?? false
            if !isOpen { store.remove(id) }
            let isWritten = await client.flush(within: Self.removalLimit) == nil
            guard isOpen || !isWritten, let error = error as? WaybillError else { throw error }
            throw error.arriving(true)
        }
    }

    // MARK: The end

    /// Ends the sends that wait for the store.
    package func shutDown() {
        client.shutDown()
    }

    /// Empties the store, and waits for that, at most for the timeout.
    package func removeAll(within timeout: Duration) async {
        await client.removeAll(within: timeout)
    }
}
