import Foundation
import Testing
import Waybill
import WaybillMQTT
import WaybillTesting

/// An entry of any kind, for what ``Talk`` has no case.
struct Line: EntryType {
    var topic: String?
    var command: EntryCommand
    var body = EntryBody.none
    var headers: Headers = [:]

    /// A subscription; of QoS 0 unless changed.
    static func listen(
        _ topic: String = "room",
        _ change: (inout SubscribeOptions) -> Void = { _ in }
    ) -> Line {
        var options = SubscribeOptions()
        change(&options)
        return Line(topic: topic, command: .subscribe(options))
    }

    /// A message; of QoS 0 unless changed.
    static func say(
        _ text: String,
        to topic: String = "room",
        headers: Headers = [:],
        _ change: (inout SendOptions) -> Void = { _ in }
    ) -> Line {
        var options = SendOptions()
        change(&options)
        return Line(topic: topic, command: .send(options), body: .text(text), headers: headers)
    }
}

extension Bench {
    /// Over the same transport, entries of any kind.
    var others: Provider<Line> { Provider(transport: transport) }

    /// Somebody else who speaks to the broker, by the system's own clock and network.
    func makeSpeaker() throws -> Provider<Line> {
        let url = try #require(URL(string: broker.url(for: .mqtt)))
        return Provider(transport: try MQTTTransport(url: url))
    }

    /// The lines of the log that begin with a word and its arrow, without the client's number.
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

/// Notes the events of a transport as they come.
final class Noted: Sendable {
    private let events = Kept([TransportEvent]())
    private let task: Task<Void, Never>

    init(_ transport: any Transport) {
        let all = transport.events
        let events = events
        task = Task {
            for await event in all { events.withLock { $0.append(event) } }
        }
    }

    deinit { task.cancel() }

    /// Those of a kind, in order.
    func of(_ kind: TransportEvent.Kind) -> [TransportEvent] {
        events.withLock { $0 }.filter { $0.kind == kind }
    }
}
