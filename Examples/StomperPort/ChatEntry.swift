public import Waybill

/// A chat message.
public struct ChatMessage: Codable, Equatable, Sendable {
    /// The sender's name.
    public var sender: String
    /// The text of the message.
    public var content: String

    /// Makes a message.
    public init(sender: String, content: String) {
        self.sender = sender
        self.content = content
    }
}

/// The endpoints of a chat server that speaks STOMP, one case each.
public enum ChatEntry: EntryType {
    /// Opens the connection.
    case connect
    /// Receives the messages.
    case subscribe
    /// Sends a message.
    case send(ChatMessage)
    /// Closes the connection.
    case disconnect

    /// Clients publish to one destination, and the server publishes to another.
    public var topic: String? {
        switch self {
        case .connect, .disconnect: nil
        case .subscribe: "/sub/chat"
        case .send: "/pub/chat"
        }
    }

    /// The command of each case, with its options.
    public var command: EntryCommand {
        switch self {
        case .connect: .connect
        case .subscribe: .subscribe
        case .send: .send
        case .disconnect: .disconnect
        }
    }

    /// A message is encoded as JSON.
    public var body: EntryBody {
        switch self {
        case .send(let message): .json(message)
        case .connect, .subscribe, .disconnect: .none
        }
    }
}
