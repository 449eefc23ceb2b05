#if os(Linux)
    import CWaybillLinux
    import WireCore

    #if canImport(Glibc)
        import Glibc
    #elseif canImport(Musl)
        import Musl
    #endif

    /// Accepts TCP connections on 127.0.0.1: the server side of tests and demonstrations.
    package final class TCPListener: EventLoop.Handler, Sendable {
        private struct State {
            var descriptor: Int32
            var registration: UInt64 = 0
        }

        private let state: Locked<State>
        private let loop: EventLoop
        private let accept: @Sendable (any ByteStream) -> Void

        package let port: UInt16

        /// Starts to listen.
        ///
        /// - Parameters:
        ///   - port: The port; 0 for any free port.
        ///   - accept: Takes each new stream, connected and not started, on the loop's thread.
        /// - Throws: `LinkError.system`, for example if the port is in use; `LinkError.unsupported` inside a
        ///   simulation.
        package init(
            port: UInt16 = 0,
            accept: @escaping @Sendable (any ByteStream) -> Void
        ) throws(LinkError) {
            try LinkEnvironment.refuseInSimulation("a real socket")
            let address = SocketAddress.ipv4(0x7F00_0001, port: port)
            let descriptor = try Socket.open(family: address.family)
            do {
                Socket.allowAddressReuse(descriptor)
                try Socket.startListening(descriptor, on: address)
                loop = try SharedEventLoop.acquire()
            } catch {
                Socket.release(descriptor)
                throw error
            }
            self.accept = accept
            self.port = Socket.localPort(descriptor)
            state = Locked(State(descriptor: descriptor))
            do {
                let registration = try loop.add(
                    self,
                    descriptor: descriptor,
                    interest: EPOLLIN.rawValue
                )
                state.withLock { $0.registration = registration }
            } catch {
                close()
                throw error
            }
        }

        func descriptorIsReady(_ events: UInt32) {
            while true {
                let descriptor = state.withLock { $0.descriptor }
                guard descriptor >= 0, let accepted = Socket.accept(descriptor) else { return }
                Socket.disableDelay(accepted)
                Socket.limitUnsent(accepted)
                Socket.keepAlive(accepted)
                guard let used = try? SharedEventLoop.acquire() else {
                    Socket.release(accepted)
                    continue
                }
                accept(TCPStream(descriptor: accepted, loop: used))
            }
        }

        /// Stops listening.
        ///
        /// Accepted connections stay open.
        package func close() {
            let wasOpen = state.withLock { state in
                guard state.descriptor >= 0 else { return false }
                loop.remove(state.registration, descriptor: state.descriptor)
                Socket.release(state.descriptor)
                state.descriptor = -1
                return true
            }
            if wasOpen { SharedEventLoop.release() }
        }
    }
#endif
