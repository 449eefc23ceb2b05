import Waybill
import WaybillSSE
import WireCore

/// The entries of the event stream tests. Their paths are used unchanged.
enum EventStreamEntry: EntryType {
    case listen(String, [SubscribeOption] = [], body: String? = nil)
    case post(String, to: String, eventType: String? = nil)
    /// Deletes the messages that nchan keeps for a channel.
    case forget(String)

    var topic: String? {
        switch self {
        case .listen(let path, _, _), .post(_, let path, _), .forget(let path): path
        }
    }

    var command: EntryCommand {
        switch self {
        case .listen(_, let options, _): .subscribe(options: options)
        case .post: .send
        case .forget: .send(.method("DELETE"))
        }
    }

    var body: EntryBody {
        switch self {
        case .listen(_, _, let body): body.map { .text($0) } ?? .none
        case .post(let text, _, _): .text(text)
        case .forget: .none
        }
    }

    var headers: Headers {
        guard case .post(_, _, let eventType?) = self else { return [:] }
        return ["X-EventSource-Event": eventType]
    }
}

/// A transport to one of the servers, and its provider.
struct EventStreamClient {
    let transport: SSETransport
    let provider: Provider<EventStreamEntry>

    /// - Parameters:
    ///   - variable: The environment variable with the server's port.
    ///   - change: Changes the configuration, whose reconnection delay is some milliseconds here.
    init(
        _ variable: String,
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) throws {
        try self.init(url: TestServers.url(variable, "http"), change)
    }

    /// Does the same as ``init(_:_:)`` for a server at any URL.
    init(
        url: String,
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = SSEConfiguration()
        configuration.reconnection.initialDelay = .milliseconds(20)
        configuration.reconnection.maximumDelay = .milliseconds(200)
        change(&configuration)
        configuration.tls.authorities = TestServers.authorities
        transport = try SSETransport(url: url, configuration: configuration)
        provider = Provider(transport: transport)
    }

    /// The messages of a stream until it ends, or the first ones.
    func messages(_ entry: EventStreamEntry, first: Int = .max) async throws -> [Message] {
        var heard: [Message] = []
        guard first > 0 else { return heard }
        for try await message in try await provider.messages(entry) {
            heard.append(message)
            if heard.count == first { break }
        }
        return heard
    }

    /// The texts of a stream until it ends, or the first ones.
    func texts(_ path: String, first: Int = .max) async throws -> [String?] {
        try await messages(.listen(path), first: first).map(\.text)
    }
}

/// Counts the requests of a transport.
final class RequestCounter: WireLogger {
    private let requests = Locked(0)

    var count: Int { requests.withLock { $0 } }

    func log(_ record: WireRecord) {
        if record.direction == .outbound { requests.withLock { $0 += 1 } }
    }
}
