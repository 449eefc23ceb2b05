#if os(Linux)
    import CWaybillLinux

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// The link's socket calls, with typed errors; no name hides the one of a function of the C library.
    enum Socket {
        /// Opens a non-blocking stream socket of an address family.
        static func open(family: Int32) throws(LinkError) -> Int32 {
            #if canImport(Glibc)
                let type = Int32(
                    SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue
                )
            #else
                let type = SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC
            #endif
            let descriptor = socket(family, type, 0)
            guard descriptor >= 0 else { throw .system(errorNumber: errno, call: "socket") }
            return descriptor
        }

        /// The error if no descriptor is left for a socket; nil if a socket can be opened.
        static func descriptorShortage() -> LinkError? {
            do {
                release(try open(family: AF_INET))
                return nil
            } catch {
                return error.isOutOfDescriptors ? error : nil
            }
        }

        /// Sends small writes at once, because the layers above gather them.
        static func disableDelay(_ descriptor: Int32) {
            set(descriptor, level: Int32(IPPROTO_TCP), option: TCP_NODELAY)
        }

        /// Acknowledges received data at once, and further data as soon as it is read.
        ///
        /// The next write cancels this: the kernel then expects a conversation, and an acknowledgement waits up to 40
        /// ms for data.
        static func acknowledgeQuickly(_ descriptor: Int32) {
            set(descriptor, level: Int32(IPPROTO_TCP), option: TCP_QUICKACK)
        }

        /// Takes little more than the network does: 128 KiB that were not sent yet, instead of up to 4 MiB.
        ///
        /// At 75 KB a second, 4 MiB take 55 seconds, which a ping behind them would wait. What the network has under way
        /// comes in addition.
        static func limitUnsent(_ descriptor: Int32) {
            set(descriptor, level: Int32(IPPROTO_TCP), option: TCP_NOTSENT_LOWAT, to: 128 << 10)
        }

        /// The number of written bytes that the peer has not acknowledged; nil for a socket that is not connected.
        static func unacknowledgedByteCount(_ descriptor: Int32) -> Int? {
            let count = waybill_unacknowledged(descriptor)
            return count < 0 ? nil : Int(count)
        }

        /// Makes the system probe a silent peer.
        ///
        /// It probes after 60 seconds of silence and then every 15 seconds. After the fourth unanswered probe the
        /// connection is lost, two minutes after the peer's last data.
        static func keepAlive(_ descriptor: Int32) {
            set(descriptor, level: SOL_SOCKET, option: SO_KEEPALIVE)
            let level = Int32(IPPROTO_TCP)
            set(descriptor, level: level, option: TCP_KEEPIDLE, to: 60)
            set(descriptor, level: level, option: TCP_KEEPINTVL, to: 15)
            set(descriptor, level: level, option: TCP_KEEPCNT, to: 4)
        }

        /// Whether a read would return bytes, the end or an error.
        static func isReadable(_ descriptor: Int32) -> Bool {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&entry, 1, 0) > 0
        }

        /// Allows a listener to use a port that is still in a closing state.
        static func allowAddressReuse(_ descriptor: Int32) {
            set(descriptor, level: SOL_SOCKET, option: SO_REUSEADDR)
        }

        /// Makes closing reset the connection: the system discards unacknowledged data and sends no more.
        static func resetWhenClosed(_ descriptor: Int32) {
            var option = linger(l_onoff: 1, l_linger: 0)
            setsockopt(
                descriptor,
                SOL_SOCKET,
                SO_LINGER,
                &option,
                socklen_t(MemoryLayout<linger>.size)
            )
        }

        private static func set(
            _ descriptor: Int32,
            level: Int32,
            option: Int32,
            to value: Int32 = 1
        ) {
            var value = value
            setsockopt(descriptor, level, option, &value, socklen_t(MemoryLayout<Int32>.size))
        }

        /// Sends as much as the socket takes; zero if it takes nothing now.
        static func write(
            _ bytes: UnsafeRawBufferPointer,
            to descriptor: Int32
        ) throws(LinkError) -> Int {
            try transfer("send") {
                send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
            } ?? 0
        }

        static func receive(
            into space: UnsafeMutableRawBufferPointer,
            from descriptor: Int32
        ) throws(LinkError) -> ReadOutcome {
            let count = try transfer("recv") { recv(descriptor, space.baseAddress, space.count, 0) }
            return switch count {
            case nil: .nothing
            case 0?: .endOfStream
            case let count?: .bytes(count)
            }
        }

        /// Repeats a call that was interrupted.
        ///
        /// - Parameters:
        ///   - name: The name of the call.
        ///   - call: Returns the number of bytes; negative after an error.
        /// - Returns: The number of bytes; nil if the socket is not ready.
        /// - Throws: `LinkError` if the connection is broken.
        @inline(__always)
        private static func transfer(_ name: String, _ call: () -> Int) throws(LinkError) -> Int? {
            while true {
                let count = call()
                if count >= 0 { return count }
                switch errno {
                case EINTR: continue
                case EAGAIN: return nil
                case ECONNRESET, EPIPE, ETIMEDOUT: throw .reset
                case let number: throw .system(errorNumber: number, call: name)
                }
            }
        }

        /// Starts to connect.
        ///
        /// - Returns: Zero, `EINPROGRESS`, or the error number.
        static func beginConnecting(_ descriptor: Int32, to address: SocketAddress) -> Int32 {
            withSocketAddress(address) { pointer, size in
                while connect(descriptor, pointer, size) != 0 {
                    guard errno == EINTR else { return errno }
                }
                return 0
            }
        }

        /// Binds to an address and listens.
        static func startListening(_ descriptor: Int32, on address: SocketAddress) throws(LinkError)
        {
            let bound = withSocketAddress(address) { bind(descriptor, $0, $1) == 0 ? 0 : errno }
            guard bound == 0 else { throw .system(errorNumber: bound, call: "bind") }
            guard listen(descriptor, 128) == 0 else {
                throw .system(errorNumber: errno, call: "listen")
            }
        }

        /// Accepts a connection that waits at a listener; nil if there is none.
        static func accept(_ descriptor: Int32) -> Int32? {
            while true {
                let accepted = waybill_accept(descriptor)
                if accepted >= 0 { return accepted }
                guard errno == EINTR || errno == ECONNABORTED else { return nil }
            }
        }

        /// The port that a socket is bound to; zero for none.
        static func localPort(_ descriptor: Int32) -> UInt16 {
            var address = sockaddr_in()
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let result = withUnsafeMutablePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    getsockname(descriptor, $0, &size)
                }
            }
            return result == 0 ? UInt16(bigEndian: address.sin_port) : 0
        }

        /// Calls `body` with an address in the form of the system calls.
        private static func withSocketAddress<Result>(
            _ address: SocketAddress,
            _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
        ) -> Result {
            var storage = sockaddr_storage()
            return withUnsafeMutableBytes(of: &storage) { space in
                // `sockaddr_storage` can hold any address and is suitably aligned; the copy is clamped to its size.
                space.copyBytes(from: address.bytes.prefix(space.count))
                return space.withMemoryRebound(to: sockaddr.self) { addresses in
                    withUnsafePointer(to: &addresses[0]) {
                        body($0, socklen_t(address.bytes.count))
                    }
                }
            }
        }

        /// The error that has occurred on a socket in the meantime; zero for none.
        static func pendingError(_ descriptor: Int32) -> Int32 {
            var number: Int32 = 0
            var size = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &number, &size)
            return number
        }

        static func release(_ descriptor: Int32) {
            close(descriptor)
        }
    }
#endif
