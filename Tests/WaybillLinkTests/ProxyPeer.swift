import WaybillLink
import WireCore

/// A proxy in memory. It records the requests, answers as the test says, and joins connections to another dialer.
final class ProxyPeer: Dialer {
    /// The reaction to a request for a tunnel.
    enum Answer: Sendable {
        /// Sends this text and joins the connection to the far end.
        case tunnel(String = "HTTP/1.1 200 OK\r\n\r\n")
        /// Sends this text and nothing more.
        case say(String)
        /// Sends this text and closes the connection.
        case hangUp(String)
    }

    private struct State: Sendable {
        var requests: [String] = []
        var endpoints: [Endpoint] = []
        var firstBytes: [UInt8] = []
        var ends = 0
        var client: End?
        var pair: ByteStreamPair?
    }

    private let answer: Answer
    private let capacity: Int
    private let far: (any Dialer)?
    private let timers = ManualTimers()
    private let state = Locked(State())

    /// - Parameters:
    ///   - answer: The reaction to each request.
    ///   - capacity: The number of bytes that each direction to the client holds.
    ///   - far: The dialer to which tunnels lead.
    init(_ answer: Answer = .tunnel(), capacity: Int = 1 << 20, to far: (any Dialer)? = nil) {
        self.answer = answer
        self.capacity = capacity
        self.far = far
    }

    /// The heads of the requests.
    var requests: [String] { state.withLock { $0.requests } }
    /// The endpoints to which the client has connected.
    var endpoints: [Endpoint] { state.withLock { $0.endpoints } }
    /// The first bytes after a head.
    var firstBytes: [UInt8] { state.withLock { $0.firstBytes } }
    /// The number of connections that the client has closed.
    var ends: Int { state.withLock { $0.ends } }

    /// True when the client has read everything on the latest connection.
    var isQuiet: Bool { state.withLock { $0.pair }?.isQuiet ?? false }

    /// Sends more text to the client.
    func say(_ text: String) { state.withLock { $0.client }?.push(Array(text.utf8)) }

    func dial(
        _ endpoint: Endpoint,
        timeout: Duration,
        timers: any TimerSource
    ) async throws(LinkError) -> any ByteStream {
        let pair = ByteStreamPair(capacity: capacity)
        let client = End(pair.second)
        state.withLock { state in
            state.endpoints.append(endpoint)
            state.client = client
            state.pair = pair
        }
        if let far {
            let stream = try await far.dial(endpoint, timeout: timeout, timers: timers)
            client.onHead = { head in
                self.note(head)
                self.reply(to: client)
                let server = End(stream)
                server.onHead = nil
                server.join(client)
                client.join(server)
                stream.start(server)
            }
        } else {
            client.onHead = { head in
                self.note(head)
                self.reply(to: client)
            }
        }
        client.onBytes = { bytes in
            self.state.withLock { if $0.firstBytes.isEmpty { $0.firstBytes = bytes } }
        }
        client.onEnd = { self.state.withLock { $0.ends += 1 } }
        pair.second.start(client)
        return pair.first
    }

    private func note(_ head: String) { state.withLock { $0.requests.append(head) } }

    private func reply(to client: End) {
        switch answer {
        case .tunnel(let text), .say(let text): client.push(Array(text.utf8))
        case .hangUp(let text):
            client.push(Array(text.utf8))
            client.finish()
        }
    }

    /// One end of a joined pair. Bytes that it reads go to the other end; pushed bytes are written.
    private final class End: ByteStreamReceiver {
        private struct State: Sendable {
            var head: [UInt8] = []
            var onHead: (@Sendable (String) -> Void)?
            var onBytes: @Sendable ([UInt8]) -> Void = { _ in }
            var onEnd: @Sendable () -> Void = {}
            var other: End?
            var queue: [UInt8] = []
            var isFinished = false
            var isWriting = false
            var canWrite = true
        }

        private let stream: any ByteStream
        private let state = Locked(State())

        init(_ stream: any ByteStream) { self.stream = stream }

        /// Gets the first head; nil when there was none.
        var onHead: (@Sendable (String) -> Void)? {
            get { state.withLock { $0.onHead } }
            set { state.withLock { $0.onHead = newValue } }
        }

        var onBytes: @Sendable ([UInt8]) -> Void {
            get { state.withLock { $0.onBytes } }
            set { state.withLock { $0.onBytes = newValue } }
        }

        var onEnd: @Sendable () -> Void {
            get { state.withLock { $0.onEnd } }
            set { state.withLock { $0.onEnd = newValue } }
        }

        func join(_ other: End) { state.withLock { $0.other = other } }

        func push(_ bytes: [UInt8]) {
            state.withLock { $0.queue += bytes }
            flush()
        }

        func finish() {
            state.withLock { $0.isFinished = true }
            flush()
        }

        private func flush() {
            while true {
                let bytes: [UInt8]? = state.withLock { state in
                    guard state.canWrite, !state.isWriting, !state.queue.isEmpty else { return nil }
                    state.isWriting = true
                    // A report during the write may set this to true again.
                    state.canWrite = false
                    return state.queue
                }
                guard let bytes else { break }
                let count = bytes.withUnsafeBytes { (try? stream.write($0)) ?? bytes.count }
                state.withLock { state in
                    state.queue.removeFirst(count)
                    state.isWriting = false
                    if count == bytes.count { state.canWrite = true }
                }
            }
            let isDone = state.withLock { $0.isFinished && $0.queue.isEmpty && !$0.isWriting }
            if isDone { stream.finishWriting() }
        }

        func streamIsReadable() {
            var space = [UInt8](repeating: 0, count: 65_536)
            while true {
                let outcome = space.withUnsafeMutableBytes { try? stream.read(into: $0) }
                switch outcome {
                case .bytes(let count)?: take(Array(space.prefix(count)))
                case .endOfStream?:
                    state.withLock { $0.other }?.finish()
                    if state.withLock({ $0.other }) == nil { onEnd() }
                    return
                default: return
                }
            }
        }

        private func take(_ bytes: [UInt8]) {
            guard let onHead else {
                onBytes(bytes)
                state.withLock { $0.other }?.push(bytes)
                return
            }
            let text = state.withLock { state in
                state.head += bytes
                return String(decoding: state.head, as: UTF8.self)
            }
            guard text.hasSuffix("\r\n\r\n") else { return }
            self.onHead = nil
            onHead(text)
        }

        func streamIsWritable() {
            state.withLock { $0.canWrite = true }
            flush()
        }

        func streamShouldFlush() {}
        func streamDidEnd(_ error: LinkError?) {}
    }
}
