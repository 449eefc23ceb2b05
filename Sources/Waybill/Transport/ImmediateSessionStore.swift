/// A store that takes a message without a task that waits for it.
package protocol ImmediateSessionStore: SessionStore {
    /// Stores a message durably, as ``SessionStore/add(_:)``.
    ///
    /// - Parameters:
    ///   - message: The message; its number is ignored.
    ///   - done: Called once, on any thread with no lock held, possibly before this method returns: with the number of the
    ///     message, or with the reason why it is not stored.
    /// - Returns: Asks the store to forget the message, as the cancellation of the task does.
    func add(
        _ message: StoredMessage,
        done: @escaping @Sendable (Result<StoredMessage.ID, any Error>) -> Void
    ) -> @Sendable () -> Void

    /// The number of messages and changes that are not on the disk.
    var unwrittenCount: Int { get }
}

extension InMemorySessionStore: ImmediateSessionStore {
    package var unwrittenCount: Int { 0 }

    package func add(
        _ message: StoredMessage,
        done: @escaping @Sendable (Result<StoredMessage.ID, any Error>) -> Void
    ) -> @Sendable () -> Void {
        done(.success(insert(message)))
        return {}
    }
}
