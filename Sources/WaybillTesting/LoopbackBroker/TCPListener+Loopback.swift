import WaybillLink

/// One port that the broker listens on.
struct LoopbackListener: Sendable {
    /// What becomes of a stream.
    typealias Acceptance = @Sendable (any ByteStream) -> Void

    #if os(Linux)
        private let listener: TCPListener

        var port: UInt16 { listener.port }

        func close() {
            listener.close()
        }

        /// Listens on all of these ports, or on none.
        static func listen(_ doors: (UInt16, Acceptance)...) throws(LinkError) -> [Self] {
            var listeners: [Self] = []
            do throws(LinkError) {
                for (port, accept) in doors {
                    listeners.append(Self(listener: try TCPListener(port: port, accept: accept)))
                }
            } catch {
                for listener in listeners { listener.close() }
                throw error
            }
            return listeners
        }
    #else
        var port: UInt16 { 0 }

        func close() {}

        /// There is no listener on this platform yet.
        static func listen(_ doors: (UInt16, Acceptance)...) throws(LinkError) -> [Self] {
            throw .unsupported("the loopback broker")
        }
    #endif
}
