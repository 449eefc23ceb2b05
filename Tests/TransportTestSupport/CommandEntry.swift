package import Waybill

/// An entry for all tests: any command on any topic.
package enum CommandEntry: EntryType {
    case command(
        EntryCommand,
        topic: String? = nil,
        body: EntryBody = .none,
        headers: Headers = [:]
    )

    package static let connect = CommandEntry.command(.connect)
    package static let disconnect = CommandEntry.command(.disconnect)

    package var topic: String? { parts.topic }
    package var command: EntryCommand { parts.command }
    package var body: EntryBody { parts.body }
    package var headers: Headers { parts.headers }

    private var parts: (command: EntryCommand, topic: String?, body: EntryBody, headers: Headers) {
        switch self {
        case .command(let command, let topic, let body, let headers):
            (command, topic, body, headers)
        }
    }
}
