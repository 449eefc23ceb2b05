import Waybill

/// An entry for all workloads: any command on any topic.
enum SimulatedEntry: EntryType {
    case command(
        EntryCommand,
        topic: String? = nil,
        body: EntryBody = .none,
        headers: Headers = [:]
    )

    static func send(_ number: Int, to topic: String, _ command: EntryCommand) -> Self {
        .command(command, topic: topic, body: .bytes(Array("\(number)".utf8)))
    }

    var topic: String? { if case .command(_, let topic, _, _) = self { topic } else { nil } }

    var command: EntryCommand {
        if case .command(let command, _, _, _) = self { command } else { .connect }
    }

    var body: EntryBody { if case .command(_, _, let body, _) = self { body } else { .none } }

    var headers: Headers { if case .command(_, _, _, let headers) = self { headers } else { [:] } }
}

extension Message {
    /// The number in the body.
    var number: Int? { Int(String(decoding: body.bytes, as: UTF8.self)) }
}
