import WaybillLink

/// Accepts the clients of a broker: on a socket, or in the network of a simulated world.
enum LoopbackListener: Sendable {
    case socket(TCPListener)
    case simulated(SimulatedNetwork, port: UInt16)

    /// Takes each stream that a listener accepts.
    typealias Acceptance = @Sendable (any ByteStream) -> Void

    /// The host of every listener.
    static let host = "127.0.0.1"

    /// Listens on all of these ports, or on none.
    ///
    /// Inside a simulation the listeners are part of its world.
    static func listen(_ doors: [(UInt16, Acceptance)]) throws(LinkError) -> [LoopbackListener] {
        var listeners: [LoopbackListener] = []
        do throws(LinkError) {
            for (port, accept) in doors { listeners.append(try listen(port, accept)) }
        } catch {
            for listener in listeners { listener.close() }
            throw error
        }
        return listeners
    }

    private static func listen(
        _ port: UInt16,
        _ accept: @escaping Acceptance
    ) throws(LinkError) -> LoopbackListener {
        guard let network = SimulatedNetwork.current else {
            return .socket(try TCPListener(port: port, accept: accept))
        }
        return .simulated(network, port: try network.listen(host, freePort: port, accept))
    }

    var port: UInt16 {
        switch self {
        case .socket(let listener): listener.port
        case .simulated(_, let port): port
        }
    }

    /// Stops listening.
    ///
    /// Accepted connections stay open.
    func close() {
        switch self {
        case .socket(let listener): listener.close()
        case .simulated(let network, let port): network.stopListening(Self.host, port)
        }
    }
}
