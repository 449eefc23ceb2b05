#if canImport(Network)
    import Dispatch
    import Network
    import WireCore

    /// Reachability by Network.framework's path monitor.
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

        /// The value if it has changed: a path also changes in ways without a meaning here.
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
        /// Converts a path; a path that must be established first, such as a VPN on demand, counts as reachable.
        init(_ path: NWPath) {
            self.init(
                isReachable: path.status != .unsatisfied,
                interface: path.availableInterfaces.first?.name
            )
        }
    }
#endif
