/// The platform's knowledge about the network.
package struct NetworkReach: Hashable, Sendable {
    /// Whether a connection may succeed at present.
    package var isReachable: Bool
    /// The interface of new connections, such as `en0`; nil if there is none or it is unknown.
    ///
    /// After a change, connections over the old interface are probably dead, even if the network was reachable all the
    /// time.
    package var interface: String?

    package init(isReachable: Bool, interface: String? = nil) {
        self.isReachable = isReachable
        self.interface = interface
    }
}

/// Reports changes of the network, if the platform knows them; a hint, never a reason to give up.
///
/// A transport that waits to reconnect uses it: when the network is back, an attempt at once is worthwhile.
package protocol Reachability: AnyObject, Sendable {
    /// Starts to report: the present value first, then each change, one at a time and in order; call it once.
    func start(_ report: @escaping @Sendable (NetworkReach) -> Void)

    /// Ends the reports; a report that has already begun may still arrive.
    func stop()
}
