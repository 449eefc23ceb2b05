public import Waybill

/// What is said in a room.
public struct ChatMessage: Codable, Equatable, Sendable {
    /// Who says it.
    public var sender: String
    /// What is said.
    public var text: String

    /// A sender's words.
    public init(sender: String, text: String) {
        self.sender = sender
        self.text = text
    }
}

/// The endpoints of a chat service, one case each.
public enum ChatEntry: EntryType {
    /// Hear what is said in a room.
    case join(room: String)
    /// Say something in a room.
    case say(ChatMessage, room: String)

    /// One topic for each room.
    public var topic: String? {
        switch self {
        case .join(let room), .say(_, let room): "chat/\(room)"
        }
    }

    /// What each case does.
    public var command: EntryCommand {
        switch self {
        case .join: .subscribe(qos: .atLeastOnce)
        case .say: .send(qos: .atLeastOnce)
        }
    }

    /// Words travel as JSON.
    public var body: EntryBody {
        switch self {
        case .join: .none
        case .say(let message, _): .json(message)
        }
    }
}
