#if os(Linux)
    import Glibc

    /// A listening socket that does only what a test asks for.
    package final class SilentListener: Sendable {
        package struct Failure: Error {
            let call: String
            let number: Int32
        }

        package let port: UInt16
        private let descriptor: Int32
        private let fillers: [Int32]

        /// Listens on 127.0.0.1.
        ///
        /// With a backlog of 0 the kernel's queue is filled at once, so that further connections are neither accepted
        /// nor refused. With nil the port is bound and refuses connections.
        package init(backlog: Int32? = 0) throws {
            let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            guard LoopbackAddress.with(0, { bind(listener, $0, $1) }) == 0 else {
                throw Failure(call: "bind", number: errno)
            }
            guard backlog.map({ listen(listener, $0) == 0 }) ?? true else {
                throw Failure(call: "listen", number: errno)
            }
            descriptor = listener
            let port = LoopbackAddress.port(of: listener)
            self.port = port
            var fillers: [Int32] = []
            if backlog == 0 {
                let type = Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue)
                for _ in 0..<4 {
                    let filler = socket(AF_INET, type, 0)
                    _ = LoopbackAddress.with(port) { connect(filler, $0, $1) }
                    fillers.append(filler)
                }
            }
            self.fillers = fillers
        }

        /// Accepts a connection and resets it.
        package func acceptAndReset() throws {
            let accepted = accept(descriptor, nil, nil)
            guard accepted >= 0 else { throw Failure(call: "accept", number: errno) }
            reset(accepted)
        }

        /// Accepts a connection, writes the text, and shuts down only its own direction.
        package func acceptAndWrite(_ text: String, thenFinish: Bool) throws {
            let accepted = accept(descriptor, nil, nil)
            guard accepted >= 0 else { throw Failure(call: "accept", number: errno) }
            _ = text.withCString { write(accepted, $0, text.utf8.count) }
            if thenFinish { shutdown(accepted, Int32(SHUT_WR)) }
            var byte: UInt8 = 0
            while read(accepted, &byte, 1) > 0 {}
            Glibc.close(accepted)
        }

        /// Accepts a connection, writes as much as the peer's socket takes at once, and resets it.
        package func acceptAndWriteThenReset(_ text: String) throws {
            let accepted = accept(descriptor, nil, nil)
            guard accepted >= 0 else { throw Failure(call: "accept", number: errno) }
            _ = text.withCString { send(accepted, $0, text.utf8.count, Int32(MSG_DONTWAIT)) }
            reset(accepted)
        }

        private func reset(_ accepted: Int32) {
            var option = linger(l_onoff: 1, l_linger: 0)
            let size = socklen_t(MemoryLayout<linger>.size)
            setsockopt(accepted, SOL_SOCKET, SO_LINGER, &option, size)
            Glibc.close(accepted)
        }

        package func close() {
            for filler in fillers { Glibc.close(filler) }
            Glibc.close(descriptor)
        }
    }
#endif
