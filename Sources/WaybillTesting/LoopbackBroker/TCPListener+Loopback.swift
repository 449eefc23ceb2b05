import WaybillLink

extension TCPListener {
    /// Takes each stream that a listener accepts.
    typealias Acceptance = @Sendable (any ByteStream) -> Void

    /// Listens on all of these ports, or on none.
    static func listen(_ doors: [(UInt16, Acceptance)]) throws(LinkError) -> [TCPListener] {
        var listeners: [TCPListener] = []
        do throws(LinkError) {
            for (port, accept) in doors {
                listeners.append(try TCPListener(port: port, accept: accept))
            }
        } catch {
            for listener in listeners { listener.close() }
            throw error
        }
        return listeners
    }
}
