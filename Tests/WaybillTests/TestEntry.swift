import Waybill
import WaybillTesting

/// An entry with a case for every command.
enum TestEntry: EntryType {
    case connect
    case send(EntryBody, headers: Headers = [:], command: EntryCommand = .send)
    case sendNowhere
    case subscribe(String = "t")
    case unsubscribe
    case disconnect

    var topic: String? {
        switch self {
        case .send, .unsubscribe: "t"
        case .subscribe(let topic): topic
        case .connect, .disconnect, .sendNowhere: nil
        }
    }

    var command: EntryCommand {
        switch self {
        case .connect: .connect
        case .send(_, _, let command): command
        case .sendNowhere: .send
        case .subscribe: .subscribe
        case .unsubscribe: .unsubscribe
        case .disconnect: .disconnect
        }
    }

    var body: EntryBody {
        switch self {
        case .send(let body, _, _): body
        default: .none
        }
    }

    var headers: Headers {
        switch self {
        case .send(_, let headers, _): headers
        default: [:]
        }
    }
}

struct Point: Codable, Equatable, Sendable {
    var x: Int
    var y: Int
}
