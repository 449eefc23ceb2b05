import Foundation
import HTTPWire
import Waybill
import WaybillLink
import WaybillSSE
import WaybillTesting
import WireCore

/// A scripted server in memory, with one answer for each connection, on a clock that stands still.
final class HTTPServer: Dialer {
    /// The answer on a connection, sent after its request.
    enum Answer: Sendable {
        /// Sends these bytes and leaves the connection open.
        case open([UInt8])
        /// Sends these bytes and ends the connection.
        case close([UInt8])
        /// Sends these bytes and resets the connection.
        case reset([UInt8])
        /// Refuses the connection.
        case refuse
        /// Never completes the connection.
        case stall
    }

    private struct State: Sendable {
        var answers: [Answer]
        var requests: [(head: HTTPRequestHead, body: [UInt8])] = []
        var endpoints: [Endpoint] = []
        var pairs: [ByteStreamPair] = []
        var ends = 0
        /// The numbers of the connections whose last request has no answer.
        var unanswered: [Int] = []
    }

    let clock = ManualClock()
    private let state: Locked<State>

    init(_ answers: [Answer]) {
        state = Locked(State(answers: answers))
    }

    /// The requests in order of arrival.
    var requests: [(head: HTTPRequestHead, body: [UInt8])] { state.withLock { $0.requests } }

    /// The endpoints to which the client has connected.
    var endpoints: [Endpoint] { state.withLock { $0.endpoints } }

    /// The number of connections that the client has closed.
    var ends: Int { state.withLock { $0.ends } }

    /// True when the client has read and handled everything on the latest connection.
    var isQuiet: Bool { state.withLock { $0.pairs.last }?.isQuiet ?? false }

    /// Sends more on the last connection.
    func send(_ text: String) {
        guard let pair = state.withLock({ $0.pairs.last }) else { return }
        _ = Array(text.utf8).withUnsafeBytes { try? pair.second.write($0) }
    }

    /// Takes the numbers of the connections whose last request has no answer.
    func unanswered() -> [Int] {
        state.withLock { state in
            defer { state.unanswered = [] }
            return state.unanswered
        }
    }

    /// Sends bytes on the connection with this number, counted from 0.
    func send(_ bytes: [UInt8], on number: Int) {
        let pairs = state.withLock { $0.pairs }
        guard pairs.indices.contains(number) else { return }
        _ = bytes.withUnsafeBytes { try? pairs[number].second.write($0) }
    }

    /// Ends the latest connection from the server's side.
    func endOfStream() {
        state.withLock { $0.pairs.last }?.second.finishWriting()
    }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let pair = ByteStreamPair()
        let error: LinkError? = state.withLock { state in
            state.endpoints.append(endpoint)
            switch state.answers.first {
            case .refuse?:
                state.answers.removeFirst()
                return .refused
            case .stall?:
                state.answers.removeFirst()
                return .cancelled
            default:
                state.pairs.append(pair)
                return nil
            }
        }
        if let error {
            // The attempt ends when the task is cancelled.
            if error == .cancelled {
                let (silence, _) = AsyncStream.makeStream(of: Never.self)
                for await _ in silence {}
            }
            throw error
        }
        pair.second.start(Connection(self, pair))
        return pair.first
    }

    /// A secure connection is one in memory, too.
    func secured(by settings: TLSSettings) -> any Dialer { self }

    private func noteEnd() { state.withLock { $0.ends += 1 } }

    private func receive(_ head: HTTPRequestHead, _ body: [UInt8], _ pair: ByteStreamPair) {
        let answer = state.withLock { state in
            state.requests.append((head, body))
            let answer = state.answers.isEmpty ? Answer.close([]) : state.answers.removeFirst()
            if case .open([]) = answer, let number = state.pairs.firstIndex(where: { $0 === pair })
            {
                state.unanswered.append(number)
            }
            return answer
        }
        func write(_ bytes: [UInt8]) {
            _ = bytes.withUnsafeBytes { try? pair.second.write($0) }
        }
        switch answer {
        case .open(let bytes): write(bytes)
        case .close(let bytes):
            write(bytes)
            pair.second.finishWriting()
        case .reset(let bytes):
            write(bytes)
            pair.reset()
        case .refuse, .stall: pair.reset()
        }
    }

    private final class Connection: ByteStreamReceiver {
        private struct State: Sendable {
            var buffer = ReceiveBuffer()
            var heads = HTTPHeadDecoder()
            var head: HTTPRequestHead?
            var hasEnded = false

            /// - Returns: True at the first call.
            mutating func noteEnd() -> Bool {
                defer { hasEnded = true }
                return !hasEnded
            }
        }

        private let server: HTTPServer
        private let pair: ByteStreamPair
        private let state = Locked(State())

        init(_ server: HTTPServer, _ pair: ByteStreamPair) {
            self.server = server
            self.pair = pair
        }

        func streamIsReadable() {
            while true {
                let (count, isEnd) = state.withLock { state in
                    var isEnd = false
                    let count = state.buffer.fill { space -> Int? in
                        guard let outcome = try? pair.second.read(into: space) else { return nil }
                        isEnd = outcome == .endOfStream
                        guard case .bytes(let count) = outcome else { return nil }
                        return count
                    }
                    return (count, isEnd)
                }
                if isEnd, state.withLock({ $0.noteEnd() }) { server.noteEnd() }
                if count == nil { break }
            }
            while let (head, body) = state.withLock({ Self.next(&$0) }) {
                server.receive(head, body, pair)
            }
        }

        private static func next(_ state: inout State) -> (HTTPRequestHead, [UInt8])? {
            if state.head == nil { state.head = try? state.heads.nextRequest(&state.buffer) }
            guard let head = state.head else { return nil }
            let length = head.headers.first("content-length").flatMap { Int($0) } ?? 0
            guard state.buffer.count >= length else { return nil }
            let body = state.buffer.slice(at: 0, count: length).bytes
            state.buffer.consume(length)
            state.head = nil
            return (head, body)
        }

        func streamIsWritable() {}
        func streamShouldFlush() {}
        func streamDidEnd(_ error: LinkError?) {}
    }

    /// A transport to this server whose random numbers are all zero.
    func transport(
        _ url: String = "http://example.com/api",
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) throws -> SSETransport {
        try transport(url, dice: { 0 }, change)
    }

    /// A transport to this server with the given random numbers.
    func transport(
        _ url: String = "http://example.com/api",
        dice: @escaping @Sendable () -> UInt64,
        _ change: (inout SSEConfiguration) -> Void = { _ in }
    ) throws -> SSETransport {
        var configuration = SSEConfiguration()
        change(&configuration)
        let timers = clock.linkTimers
        return try SSETransport(
            url: .init(string: url) ?? .init(filePath: "/"),
            configuration: configuration,
            environment: LinkEnvironment(
                dialer: self,
                clock: timers,
                random: dice
            )
        )
    }
}

/// Bytes of server responses.
enum Say {
    static func stream(_ events: String, _ fields: String = "") -> [UInt8] {
        Array("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\(fields)\r\n\(events)".utf8)
    }

    static func status(_ status: Int, _ fields: String = "", body: String = "") -> [UInt8] {
        let length = body.utf8.count
        return Array(
            "HTTP/1.1 \(status) Words\r\nContent-Length: \(length)\r\n\(fields)\r\n\(body)".utf8
        )
    }
}

/// An entry for all tests.
enum StreamEntry: EntryType {
    case command(
        EntryCommand,
        topic: String? = nil,
        body: EntryBody = .none,
        headers: Headers = [:]
    )

    static func listen(
        _ topic: String = "events",
        _ options: SubscribeOption...
    ) -> StreamEntry {
        .command(.subscribe(options: options), topic: topic)
    }

    static func post(_ body: EntryBody, to topic: String = "messages") -> StreamEntry {
        .command(.send, topic: topic, body: body)
    }

    var topic: String? { if case .command(_, let topic, _, _) = self { topic } else { nil } }
    var command: EntryCommand {
        if case .command(let command, _, _, _) = self { command } else { .connect }
    }
    var body: EntryBody { if case .command(_, _, let body, _) = self { body } else { .none } }
    var headers: Headers { if case .command(_, _, _, let headers) = self { headers } else { [:] } }
}
