import Testing
import Waybill
import WaybillSTOMP
import WaybillTesting
import WireCore

/// An entry for all tests: any command on any destination.
enum STOMPEntry: EntryType {
    case command(
        EntryCommand,
        topic: String? = nil,
        body: EntryBody = .none,
        headers: Headers = [:]
    )

    static func send(
        _ text: String,
        to topic: String = "/queue/t",
        headers: Headers = [:],
        asksForReceipt: Bool? = nil
    ) -> STOMPEntry {
        var options = SendOptions()
        options.asksForReceipt = asksForReceipt
        return .command(
            .send(options),
            topic: topic,
            body: .bytes(Array(text.utf8)),
            headers: headers
        )
    }

    static func subscribe(
        _ topic: String = "/queue/t",
        _ ackMode: AckMode? = nil,
        _ acknowledgement: AcknowledgementMode = .whenTaken,
        buffering: BufferPolicy? = nil,
        headers: Headers = [:]
    ) -> STOMPEntry {
        let options = SubscribeOptions(
            ackMode: ackMode,
            buffering: buffering,
            acknowledgement: acknowledgement
        )
        return .command(.subscribe(options), topic: topic, headers: headers)
    }

    static func unsubscribe(_ topic: String = "/queue/t") -> STOMPEntry {
        .command(.unsubscribe, topic: topic)
    }

    static func ack(_ id: Message.ID, in transaction: String? = nil) -> STOMPEntry {
        .command(.ack(id, transaction: transaction))
    }

    static func nack(_ id: Message.ID, in transaction: String? = nil) -> STOMPEntry {
        .command(.nack(id, transaction: transaction))
    }

    static func begin(_ name: String) -> STOMPEntry { .command(.begin(transaction: name)) }
    static func commit(_ name: String) -> STOMPEntry { .command(.commit(transaction: name)) }
    static func abort(_ name: String) -> STOMPEntry { .command(.abort(transaction: name)) }

    static let connect = STOMPEntry.command(.connect)
    static let disconnect = STOMPEntry.command(.disconnect)

    var topic: String? { if case .command(_, let topic, _, _) = self { topic } else { nil } }

    var command: EntryCommand {
        if case .command(let command, _, _, _) = self { command } else { .connect }
    }

    var body: EntryBody { if case .command(_, _, let body, _) = self { body } else { .none } }

    var headers: Headers { if case .command(_, _, _, let headers) = self { headers } else { [:] } }
}

/// The services that carry STOMP frames.
let services: [LoopbackBroker.Service] = [.stomp, .stompOverWebSocket]

/// A broker for one test, and transports to it.
struct Fixture {
    let broker: LoopbackBroker
    let service: LoopbackBroker.Service
    /// The lines of the broker's log.
    let lines = LineLog()

    init(
        _ service: LoopbackBroker.Service = .stomp,
        _ change: (inout LoopbackBroker.Configuration) -> Void = { _ in }
    ) throws {
        self.service = service
        var configuration = LoopbackBroker.Configuration()
        configuration.log = { [lines] in lines.append($0) }
        change(&configuration)
        broker = LoopbackBroker(configuration: configuration)
        try broker.start()
    }

    func transport(
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> STOMPTransport {
        var configuration = STOMPConfiguration()
        configuration.reconnection = .never
        // A machine that also builds is slow.
        configuration.connectTimeout = .seconds(60)
        configuration.receiptTimeout = .seconds(60)
        configuration.replyTimeout = .seconds(120)
        change(&configuration)
        return try STOMPTransport(url: broker.url(for: service), configuration: configuration)
    }

    func provider(
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) throws -> (STOMPTransport, Provider<STOMPEntry>) {
        let transport = try transport(change)
        return (transport, Provider(transport: transport))
    }
}

/// Lines that several threads append to.
final class LineLog: Sendable {
    private let lines = Locked([String]())

    var all: [String] { lines.withLock { $0 } }

    func append(_ line: String) { lines.withLock { $0.append(line) } }

    func count(_ text: String) -> Int { all.count { $0.contains(text) } }

    /// The first line with this text, from the frame on.
    func first(_ text: String) -> String? {
        all.first { $0.contains(text) }.map { line in
            line.split(separator: " ", maxSplits: 3).last.map(String.init) ?? line
        }
    }
}

/// Takes a number of messages, in order.
func take(_ count: Int, _ messages: Messages<Message>) async throws -> [Message] {
    var taken: [Message] = []
    for try await message in messages {
        taken.append(message)
        if taken.count == count { break }
    }
    return taken
}

/// Takes the texts of a number of messages, in order.
func texts(_ count: Int, _ messages: Messages<Message>) async throws -> [String] {
    try await take(count, messages).map { $0.text ?? "" }
}

@discardableResult
func expectError<T>(
    _ code: WaybillError.Code,
    _ location: SourceLocation = #_sourceLocation,
    _ body: () async throws -> T
) async -> WaybillError? {
    do {
        _ = try await body()
        Issue.record("no error", sourceLocation: location)
        return nil
    } catch {
        let found = error as? WaybillError
        #expect(found?.code == code, "\(error)", sourceLocation: location)
        return found
    }
}
