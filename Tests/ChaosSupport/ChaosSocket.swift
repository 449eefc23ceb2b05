#if os(Linux)
    import Glibc
    import WireTestSupport

    /// The socket calls of the proxy. None of them blocks.
    enum ChaosSocket {
        struct Failure: Error {
            let call: String
            let number: Int32
        }

        enum Outcome {
            case bytes(Int)
            case nothing
            case end
            case failure
        }

        /// A socket bound to 127.0.0.1.
        static func bound(to port: UInt16) throws -> Int32 {
            let descriptor = try opened()
            var one: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &one, 4)
            guard LoopbackAddress.with(port, { bind(descriptor, $0, $1) }) == 0 else {
                throw failure("bind", closing: descriptor)
            }
            return descriptor
        }

        /// A listening socket at a port that another socket keeps bound.
        static func listening(at port: UInt16) throws -> Int32 {
            let descriptor = try bound(to: port)
            guard listen(descriptor, 256) == 0 else {
                throw failure("listen", closing: descriptor)
            }
            return descriptor
        }

        /// A socket that has begun to connect.
        static func connecting(to port: UInt16) throws -> Int32 {
            let descriptor = try opened()
            let result = LoopbackAddress.with(port) { connect(descriptor, $0, $1) }
            guard result == 0 || errno == EINPROGRESS else {
                throw failure("connect", closing: descriptor)
            }
            prepare(descriptor)
            return descriptor
        }

        static func accepted(from listener: Int32) -> Int32? {
            let descriptor = accept(listener, nil, nil)
            guard descriptor >= 0 else { return nil }
            prepare(descriptor)
            return descriptor
        }

        /// The error of a connection attempt; zero for success.
        static func error(of descriptor: Int32) -> Int32 {
            var number: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size)
            return number
        }

        static func send(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) -> Outcome {
            let flags = Int32(MSG_NOSIGNAL)
            let count = Glibc.send(descriptor, bytes.baseAddress, bytes.count, flags)
            if count >= 0 { return .bytes(count) }
            return errno == EAGAIN || errno == EINTR ? .nothing : .failure
        }

        static func receive(
            into space: UnsafeMutableRawBufferPointer,
            from descriptor: Int32
        ) -> Outcome {
            let count = recv(descriptor, space.baseAddress, space.count, 0)
            if count > 0 { return .bytes(count) }
            if count == 0 { return .end }
            return errno == EAGAIN || errno == EINTR ? .nothing : .failure
        }

        static func finish(_ descriptor: Int32) {
            shutdown(descriptor, Int32(SHUT_WR))
        }

        /// Closes with a reset, which discards everything in transit.
        static func reset(_ descriptor: Int32) {
            var option = linger(l_onoff: 1, l_linger: 0)
            let size = socklen_t(MemoryLayout<linger>.size)
            setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, size)
            Glibc.close(descriptor)
        }

        private static func opened() throws -> Int32 {
            let type = SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
            let descriptor = socket(AF_INET, Int32(type), 0)
            guard descriptor >= 0 else { throw Failure(call: "socket", number: errno) }
            return descriptor
        }

        private static func failure(_ call: String, closing descriptor: Int32) -> Failure {
            let number = errno
            Glibc.close(descriptor)
            return Failure(call: call, number: number)
        }

        /// Sends each piece at once, and keeps child processes from inheriting the descriptor.
        private static func prepare(_ descriptor: Int32) {
            var one: Int32 = 1
            setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &one, 4)
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        }
    }
#endif
