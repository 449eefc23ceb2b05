import WaybillMQTT

struct ChatMessage: Codable { var text: String }

enum ChatEntry: EntryType {
    case join
    case say(ChatMessage)

    var topic: String? { "chat/lobby" }

    var command: EntryCommand {
        switch self {
        case .join: .subscribe(qos: .atLeastOnce)
        case .say: .send(qos: .atLeastOnce)
        }
    }

    var body: EntryBody {
        if case .say(let message) = self { .json(message) } else { .none }
    }
}

let chat = Provider<ChatEntry>(transport: try MQTTTransport(url: "mqtts://broker.example"))

try await chat.withConnection {
    let messages: Messages<ChatMessage> = try await chat.messages(.join)
    try await chat.request(.say(ChatMessage(text: "Hello")))
    for try await message in messages.skippingFailures { print(message.text) }
}
