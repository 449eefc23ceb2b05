extension EntryCommand {
    /// A command without its options.
    public enum Kind: String, CaseIterable, Hashable, Sendable {
        /// Opens the connection.
        case connect
        /// Sends a message.
        case send
        /// Begins a subscription.
        case subscribe
        /// Ends a subscription.
        case unsubscribe
        /// Acknowledges a message.
        case ack
        /// Refuses a message.
        case nack
        /// Begins a transaction.
        case begin
        /// Commits a transaction.
        case commit
        /// Aborts a transaction.
        case abort
        /// Closes the connection.
        case disconnect
    }

    /// The command without its options.
    public var kind: Kind {
        switch self {
        case .connect: .connect
        case .send: .send
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        case .ack: .ack
        case .nack: .nack
        case .begin: .begin
        case .commit: .commit
        case .abort: .abort
        case .disconnect: .disconnect
        }
    }

    /// The command's name, for logs and errors.
    public var name: String { kind.rawValue }
}
