import Foundation
import Testing
import Waybill
import WaybillMQTT
import WaybillTesting

/// An entry of any kind, for commands that ``Talk`` lacks.
struct Line: EntryType {
    var topic: String?
    var command: EntryCommand
    var body = EntryBody.none
    var headers: Headers = [:]

    /// A subscription, with QoS 0 by default.
    static func listen(
        _ topic: String = "room",
        _ change: (inout EntryCommand) -> Void = { _ in }
    ) -> Line {
        var line = Line(topic: topic, command: .subscribe)
        change(&line.command)
        return line
    }

    /// A message, with QoS 0 by default.
    static func say(
        _ text: String,
        to topic: String = "room",
        headers: Headers = [:],
        _ change: (inout EntryCommand) -> Void = { _ in }
    ) -> Line {
        var line = Line(topic: topic, command: .send, body: .text(text), headers: headers)
        change(&line.command)
        return line
    }
}

extension Bench {
    /// A provider for entries of any kind, over the same transport.
    var others: Provider<Line> { Provider(transport: transport) }

    /// Another client of the broker, on the system's clock and network.
    func makeSpeaker() throws -> Provider<Line> {
        let url = try #require(URL(string: broker.url(for: .mqtt)))
        return Provider(transport: try MQTTTransport(url: url))
    }

    /// The log lines that begin with a word and its arrow, without the client's number.
    func sentences(_ beginning: String, from client: Int = 1) -> [String] {
        log.compactMap { line in
            let words = line.split(separator: " ", maxSplits: 2)
            guard words.count == 3, let number = Int(words[1]), number >= client,
                words[2].hasPrefix(beginning)
            else { return nil }
            return String(words[2])
        }
    }
}
