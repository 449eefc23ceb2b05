package import Waybill

/// A service that adds numbers: the same entries over every transport and broker.
package enum SumEntry: EntryType {
    package struct Sum: Codable, Sendable {
        package var a: Int
        package var b: Int

        package init(a: Int, b: Int) {
            self.a = a
            self.b = b
        }
    }

    case add(Sum, at: String = "sums")
    /// The subscription of the service that answers.
    case sums(at: String = "sums")
    case answer(Int, to: Message)

    package var topic: String? {
        switch self {
        case .add(_, let topic), .sums(let topic): topic
        case .answer(_, let message): message.replyTopic
        }
    }

    package var command: EntryCommand {
        switch self {
        case .add: .send(qos: .atLeastOnce)
        case .sums: .subscribe(qos: .atLeastOnce)
        case .answer(_, let message): .reply(to: message, qos: .atLeastOnce)
        }
    }

    package var body: EntryBody {
        switch self {
        case .add(let sum, _): .json(sum)
        case .sums: .none
        case .answer(let result, _): .json(result)
        }
    }
}
