#if canImport(Network)
    import Dispatch
    import Network
    import WireCore

    /// A listener of Network.framework on the loopback address, which decides nothing.
    package final class FrameworkListener: SystemListener {
        /// The limit of the wait in ``start(_:accept:)``.
        private static let waiting = DispatchTimeInterval.seconds(5)

        private let listener: NWListener
        /// Its target has a thread whenever there is a job, however many threads wait.
        private let queue = DispatchQueue(label: "waybill.listener")

        /// - Parameter port: The port; 0 for any free port.
        /// - Throws: `LinkError.system` and others, as the framework says.
        init(port: UInt16) throws(LinkError) {
            let tcp = NWProtocolTCP.Options()
            tcp.noDelay = true
            let parameters = NWParameters(tls: nil, tcp: tcp)
            parameters.requiredLocalEndpoint = .hostPort(
                host: .ipv4(.loopback),
                port: NWEndpoint.Port(rawValue: port) ?? .any
            )
            parameters.allowLocalEndpointReuse = true
            do {
                listener = try NWListener(using: parameters)
            } catch {
                throw (error as? NWError).map(Self.reason)
                    ?? .system(errorNumber: 0, call: "NWListener: \(error)")
            }
        }

        deinit {
            listener.cancel()
        }

        package func start(
            _ report: @escaping @Sendable (NetworkListenerState.Event) -> Void,
            accept: @escaping @Sendable (FrameworkConnection) -> Void
        ) {
            let isDecided = DispatchSemaphore(value: 0)
            listener.stateUpdateHandler = { [weak self] new in
                guard let event = self?.event(of: new) else { return }
                report(event)
                isDecided.signal()
            }
            listener.newConnectionHandler = { connection in
                accept(FrameworkConnection(connection, to: NetworkPeer(host: "127.0.0.1")))
            }
            listener.start(queue: queue)
            // The broker promises its port to a caller who does not wait. The loopback address needs no network, so it
            // takes the time of a system call.
            _ = isDecided.wait(timeout: .now() + Self.waiting)
        }

        package func cancel() { listener.cancel() }

        private func event(of new: NWListener.State) -> NetworkListenerState.Event? {
            switch new {
            case .setup: nil
            case .ready: .ready(port: listener.port?.rawValue ?? 0)
            case .waiting(let error): .waiting(Self.reason(error))
            case .failed(let error): .failed(Self.reason(error))
            case .cancelled: .cancelled
            @unknown default: nil
            }
        }

        private static func reason(_ error: NWError) -> LinkError {
            LinkError(NetworkFault(error), of: NetworkPeer(host: "127.0.0.1"))
        }
    }

    /// Accepts TCP connections on 127.0.0.1: the server side of tests and demonstrations.
    package typealias TCPListener = NetworkListener<FrameworkListener>

    extension NetworkListener<FrameworkListener> {
        /// Starts to listen, and blocks until the port is known, 5 seconds at most.
        ///
        /// - Parameters:
        ///   - port: The port; 0 for any free port.
        ///   - accept: Takes each new stream, connected and not started, on the stream's queue.
        /// - Throws: The error of the listener, for example if the port is in use.
        package convenience init(
            port: UInt16 = 0,
            accept: @escaping @Sendable (any ByteStream) -> Void
        ) throws(LinkError) {
            try self.init(try FrameworkListener(port: port), accept: accept)
        }
    }
#endif
