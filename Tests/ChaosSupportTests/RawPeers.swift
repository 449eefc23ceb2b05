#if os(Linux)
    import Glibc
    import WireCore
    import WireTestSupport

    /// The end of a connection as a raw socket sees it.
    enum RawEnd: Equatable, Sendable {
        case finished
        case reset
    }

    /// A blocking socket whose reads and writes time out after ten seconds.
    struct RawSocket: ~Copyable, Sendable {
        struct Failure: Error {
            let call: String
            let number: Int32
        }

        let descriptor: Int32

        init(accepted descriptor: Int32) {
            self.descriptor = descriptor
            var limit = timeval(tv_sec: 10, tv_usec: 0)
            let size = socklen_t(MemoryLayout<timeval>.size)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
            setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
        }

        init(connectedTo port: UInt16) throws {
            let opened = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let result = LoopbackAddress.with(port) { connect(opened, $0, $1) }
            guard result == 0 else {
                let number = errno
                Glibc.close(opened)
                throw Failure(call: "connect", number: number)
            }
            self.init(accepted: opened)
        }

        deinit {
            Glibc.close(descriptor)
        }

        /// - Returns: True when the socket took all bytes.
        @discardableResult
        func send(_ bytes: [UInt8]) -> Bool {
            var start = 0
            while start < bytes.count {
                let count = bytes.withUnsafeBytes { space in
                    Glibc.send(
                        descriptor,
                        space.baseAddress.map { $0 + start },
                        bytes.count - start,
                        Int32(MSG_NOSIGNAL)
                    )
                }
                guard count > 0 else { return false }
                start += count
            }
            return true
        }

        func makeNonBlocking() {
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        }

        func finish() {
            shutdown(descriptor, Int32(SHUT_WR))
        }

        /// The bytes of one read.
        func receive(upTo limit: Int = 65_536) -> (bytes: [UInt8], end: RawEnd?) {
            var bytes = [UInt8](repeating: 0, count: limit)
            let count = recv(descriptor, &bytes, limit, 0)
            guard count > 0 else { return ([], count == 0 ? .finished : .reset) }
            return (Array(bytes.prefix(count)), nil)
        }

        /// The bytes up to the end or up to `total`, and the size of each read.
        func receiveAll(_ total: Int = .max) -> (bytes: [UInt8], end: RawEnd?, sizes: [Int]) {
            var all: [UInt8] = []
            var sizes: [Int] = []
            while all.count < total {
                let (bytes, end) = receive(upTo: min(65_536, total - all.count))
                if let end { return (all, end, sizes) }
                all += bytes
                sizes.append(bytes.count)
            }
            return (all, nil, sizes)
        }
    }

    /// Accepts connections on a thread of its own and echoes the bytes until they end.
    final class EchoServer: Sendable {
        private struct State: Sendable {
            var received = 0
            var ends: [RawEnd] = []
        }

        private final class Shared: Sendable {
            let listener: Int32
            let state = Locked(State())

            init(_ listener: Int32) {
                self.listener = listener
            }

            func run() {
                while true {
                    let descriptor = accept(listener, nil, nil)
                    guard descriptor >= 0 else { return }
                    let peer = RawSocket(accepted: descriptor)
                    while true {
                        let (bytes, end) = peer.receive()
                        state.withLock { $0.received += bytes.count }
                        if let end {
                            state.withLock { $0.ends.append(end) }
                            break
                        }
                        if !peer.send(bytes) {
                            state.withLock { $0.ends.append(.reset) }
                            break
                        }
                    }
                }
            }
        }

        let port: UInt16
        private let shared: Shared
        private let thread: Locked<pthread_t?>

        init() throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            let result = LoopbackAddress.with(0) { bind(listener, $0, $1) }
            guard result == 0, listen(listener, 16) == 0 else {
                throw RawSocket.Failure(call: "listen", number: errno)
            }
            port = LoopbackAddress.port(of: listener)
            shared = Shared(listener)
            var thread = pthread_t()
            pthread_create(
                &thread,
                nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<Shared>.fromOpaque(context).takeRetainedValue().run()
                    return nil
                },
                Unmanaged.passRetained(shared).toOpaque()
            )
            self.thread = Locked(thread)
        }

        /// The number of bytes received over all connections.
        var received: Int { shared.state.withLock { $0.received } }

        /// The ends of the connections.
        var ends: [RawEnd] { shared.state.withLock { $0.ends } }

        /// Waits until the server has seen the end of a connection.
        func waitForEnd() {
            while ends.isEmpty { sched_yield() }
        }

        /// Waits for the open connections to end, and stops.
        func stop() {
            guard let thread = thread.withLock({ $0.take() }) else { return }
            shutdown(shared.listener, Int32(SHUT_RDWR))
            pthread_join(thread, nil)
            Glibc.close(shared.listener)
        }
    }
#endif
