#if canImport(Network)
    import Dispatch
    import Network
    import WireCore

    /// Reachability as Network.framework's path monitor tells it.
    package final class NetworkPathMonitor: Reachability, Sendable {
        private let monitor = NWPathMonitor()
        private let queue = DispatchQueue(label: "waybill.path")
        private let last = Locked<NetworkReach?>(nil)

        package init() {}

        package func start(_ report: @escaping @Sendable (NetworkReach) -> Void) {
            queue.async { [self] in
                monitor.pathUpdateHandler = { [weak self] path in
                    guard let self, let change = note(NetworkReach(path)) else { return }
                    report(change)
                }
                monitor.start(queue: queue)
            }
        }

        package func stop() {
            queue.async { [monitor] in
                monitor.pathUpdateHandler = nil
                monitor.cancel()
            }
        }

        /// The value if it is news: a path also changes in ways that are nobody's business here.
        private func note(_ reach: NetworkReach) -> NetworkReach? {
            last.withLock { last in
                guard last != reach else { return nil }
                last = reach
                return reach
            }
        }

        deinit {
            monitor.cancel()
        }
    }

    extension NetworkReach {
        /// What a path tells; one that must be established first, as a VPN on demand, is worth an attempt.
        init(_ path: NWPath) {
            self.init(
                isReachable: path.status != .unsatisfied,
                interface: path.availableInterfaces.first?.name
            )
        }
    }
#endif
