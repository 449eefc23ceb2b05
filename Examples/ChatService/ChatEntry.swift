public import Waybill

/// A message in a room.
public struct ChatMessage: Codable, Equatable, Sendable {
    /// The sender's name.
    public var sender: String
    /// The text of the message.
    public var text: String

    /// Makes a message.
    public init(sender: String, text: String) {
        self.sender = sender
        self.text = text
    }
}

/// The endpoints of a chat service, one case each.
public enum ChatEntry: EntryType {
    /// Receives the messages of a room.
    case join(room: String)
    /// Sends a message to a room.
    case say(ChatMessage, room: String)

    /// One topic for each room.
    public var topic: String? {
        switch self {
        case .join(let room), .say(_, let room): "chat/\(room)"
        }
    }

    /// The command of each case.
    public var command: EntryCommand {
        switch self {
        case .join: .subscribe(qos: .atLeastOnce)
        case .say: .send(qos: .atLeastOnce)
        }
    }

    /// A message is encoded as JSON.
    public var body: EntryBody {
        switch self {
        case .join: .none
        case .say(let message, _): .json(message)
        }
    }
}
