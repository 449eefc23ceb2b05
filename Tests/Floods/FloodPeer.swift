#if os(Linux)
    import CWaybillZlib
    import Glibc
    import HTTPWire
    import WebSocketWire
    import WireCore

    /// A hostile server for one client. It makes blocking calls on a thread of its own and allocates only what it
    /// sends.
    final class FloodPeer: Sendable {
        /// The number of bytes sent, and whether the server has finished.
        struct Progress: Sendable {
            var sentByteCount = 0
            var mayPour = false
            var isDone = false
        }

        let progress = Locked(Progress())
        let port: UInt16
        private let listener: Int32

        init() throws {
            let opened = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            listener = opened
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    bind(opened, pointer, size) | listen(opened, 8)
                        | getsockname(opened, pointer, &size)
                }
            }
            guard result == 0 else { throw Failure(call: "listen", number: errno) }
            port = UInt16(bigEndian: address.sin_port)
        }

        struct Failure: Error {
            let call: String
            let number: Int32
        }

        /// Serves one connection on a new thread.
        func serve(_ body: @escaping @Sendable (borrowing Connection) -> Void) {
            let context = Unmanaged.passRetained(Work(peer: self, body: body))
            var thread = pthread_t()
            pthread_create(
                &thread,
                nil,
                { context in
                    guard let context else { return nil }
                    Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run()
                    return nil
                },
                context.toOpaque()
            )
        }

        private final class Work: Sendable {
            let peer: FloodPeer
            let body: @Sendable (borrowing Connection) -> Void

            init(peer: FloodPeer, body: @escaping @Sendable (borrowing Connection) -> Void) {
                self.peer = peer
                self.body = body
            }

            func run() {
                let descriptor = accept(peer.listener, nil, nil)
                body(Connection(descriptor: descriptor, peer: peer))
                peer.progress.withLock { $0.isDone = true }
            }
        }

        /// One accepted connection.
        struct Connection: ~Copyable {
            let descriptor: Int32
            let peer: FloodPeer

            /// The time in milliseconds after which a client that reads nothing counts as holding the flood back.
            private static var pollTimeout: Int32 { 2_000 }

            deinit { Glibc.close(descriptor) }

            /// The client's next bytes.
            func read() -> [UInt8] {
                var bytes = [UInt8](repeating: 0, count: 65_536)
                let count = recv(descriptor, &bytes, bytes.count, 0)
                return Array(bytes.prefix(max(count, 0)))
            }

            /// Reads until the given text has arrived.
            func read(until end: String) -> [UInt8] {
                var all: [UInt8] = []
                while !String(decoding: all, as: UTF8.self).contains(end) {
                    let more = read()
                    if more.isEmpty { break }
                    all += more
                }
                return all
            }

            /// - Returns: True when the client took all bytes.
            @discardableResult
            func write(_ bytes: [UInt8]) -> Bool {
                var start = 0
                while start < bytes.count {
                    var entry = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                    guard poll(&entry, 1, Self.pollTimeout) == 1 else { return false }
                    let count = bytes.withUnsafeBytes { space in
                        send(
                            descriptor,
                            space.baseAddress.map { $0 + start },
                            bytes.count - start,
                            Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
                        )
                    }
                    if count < 0, errno != EAGAIN { return false }
                    start += max(count, 0)
                }
                peer.progress.withLock { $0.sentByteCount += bytes.count }
                return true
            }

            /// Waits until the client has measured its idle memory.
            func waitToPour() {
                while !peer.progress.withLock({ $0.mayPour }) { usleep(1_000) }
            }

            /// Sends a piece repeatedly, until the client stops reading or `total` bytes have been sent.
            func pour(_ piece: [UInt8], upTo total: Int = 512 << 20) {
                pour(upTo: total) { _ in piece }
            }

            /// Sends numbered pieces, until the client stops reading or `total` bytes have been sent.
            func pour(upTo total: Int = 512 << 20, _ piece: (Int) -> [UInt8]) {
                waitToPour()
                var number = 0
                var sent = 0
                while sent < total {
                    let bytes = piece(number)
                    guard write(bytes) else { return }
                    number += 1
                    sent += bytes.count
                }
                // The client gets a moment to handle the last bytes.
                usleep(1_000_000)
            }

            // MARK: Openings

            /// Accepts an MQTT 5 client and its first subscription.
            func acceptMQTT() {
                _ = read()
                write([0x20, 3, 0, 0, 0])
                let subscribe = read()
                let start = subscribe.count > 1 && subscribe[1] & 0x80 != 0 ? 3 : 2
                guard subscribe.count > start + 1 else { return }
                write([0x90, 4, subscribe[start], subscribe[start + 1], 0, 2])
            }

            /// Accepts a STOMP client and its first subscription.
            ///
            /// - Returns: The id of the subscription.
            func acceptSTOMP() -> String {
                _ = read(until: "\0")
                write(Array("CONNECTED\nversion:1.2\n\n\0".utf8))
                let frame = String(decoding: read(until: "\0"), as: UTF8.self)
                let receipt = field("receipt", of: frame)
                write(Array("RECEIPT\nreceipt-id:\(receipt)\n\n\0".utf8))
                return field("id", of: frame)
            }

            private func field(_ name: String, of frame: String) -> String {
                let line = frame.split(separator: "\n").first { $0.hasPrefix(name + ":") }
                return line.map { String($0.dropFirst(name.count + 1)) } ?? ""
            }

            /// Opens a WebSocket.
            func acceptWebSocket(deflate: PermessageDeflate? = nil) {
                var buffer = ReceiveBuffer()
                buffer.append(read(until: "\r\n\r\n"))
                var heads = HTTPHeadDecoder(limits: HTTPHeadLimits())
                guard let request = try? heads.nextRequest(&buffer) else { return }
                let head = WebSocketServerHandshake.response(
                    to: request,
                    subprotocol: nil,
                    deflate: deflate,
                    headers: [:]
                ).head
                var writer = ByteWriter()
                try? head.encode(into: &writer)
                write(writer.bytes)
            }

            /// Answers a request for an event stream.
            func acceptEventStream(_ fields: String = "") {
                _ = read(until: "\r\n\r\n")
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\(fields)\r\n"
                write(Array(head.utf8))
            }
        }

        // MARK: What is poured

        /// A PUBLISH of MQTT 5.
        static func publish(
            topic: String,
            properties: [UInt8] = [],
            payload: Int = 0,
            qos: UInt8 = 0,
            identifier: Int = 0
        ) -> [UInt8] {
            var body = string(topic)
            if qos > 0 {
                let identifier = UInt16(identifier % 65_535 + 1)
                body += [UInt8(identifier >> 8), UInt8(identifier & 0xFF)]
            }
            body += variable(properties.count) + properties
            body += [UInt8](repeating: 0x78, count: payload)
            return [0x30 | qos << 1] + variable(body.count) + body
        }

        static func userProperty(_ name: String, _ value: String) -> [UInt8] {
            [0x26] + string(name) + string(value)
        }

        private static func string(_ text: String) -> [UInt8] {
            let bytes = Array(text.utf8)
            return [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)] + bytes
        }

        private static func variable(_ number: Int) -> [UInt8] {
            var number = number
            var bytes: [UInt8] = []
            repeat {
                bytes.append(UInt8(number & 0x7F) | (number > 0x7F ? 0x80 : 0))
                number >>= 7
            } while number > 0
            return bytes
        }

        /// A frame from a server with the given first byte.
        static func frame(_ first: UInt8, _ payload: [UInt8]) -> [UInt8] {
            var bytes = [first]
            switch payload.count {
            case ...125: bytes.append(UInt8(payload.count))
            case ...65_535: bytes += [126, UInt8(payload.count >> 8), UInt8(payload.count & 0xFF)]
            default:
                bytes.append(127)
                bytes += (0..<8).map { UInt8(truncatingIfNeeded: payload.count >> (56 - 8 * $0)) }
            }
            return bytes + payload
        }

        /// Raw deflate data up to the end of a sync flush.
        static func deflated(_ bytes: [UInt8]) -> [UInt8] {
            guard let stream = waybill_deflater_create(9, 15, 8) else { return [] }
            defer { waybill_deflater_destroy(stream) }
            var output = [UInt8](repeating: 0, count: bytes.count + 1_024)
            var consumed = 0
            var produced = 0
            // In bounds: zlib gets the sizes of both buffers.
            _ = waybill_deflate(
                stream,
                bytes,
                bytes.count,
                &output,
                output.count,
                &consumed,
                &produced
            )
            return Array(output.prefix(produced))
        }
    }
#endif
