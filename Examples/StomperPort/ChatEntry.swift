public import Waybill

/// What is said.
public struct ChatMessage: Codable, Equatable, Sendable {
    /// Who says it.
    public var sender: String
    /// What is said.
    public var content: String

    /// A sender's words.
    public init(sender: String, content: String) {
        self.sender = sender
        self.content = content
    }
}

/// The endpoints of a chat server that speaks STOMP, one case each.
public enum ChatEntry: EntryType {
    /// Open the connection.
    case connect
    /// Hear what is said.
    case subscribe
    /// Say something.
    case send(ChatMessage)
    /// Close the connection.
    case disconnect

    /// Clients publish to one destination, and the server publishes to another.
    public var topic: String? {
        switch self {
        case .connect, .disconnect: nil
        case .subscribe: "/sub/chat"
        case .send: "/pub/chat"
        }
    }

    /// What each case does, with options of its own.
    public var command: EntryCommand {
        switch self {
        case .connect: .connect
        case .subscribe: .subscribe
        case .send: .send
        case .disconnect: .disconnect
        }
    }

    /// Words travel as JSON.
    public var body: EntryBody {
        switch self {
        case .send(let message): .json(message)
        case .connect, .subscribe, .disconnect: .none
        }
    }
}
