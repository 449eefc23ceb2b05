/// What a platform knows of the way to the network.
package struct NetworkReach: Hashable, Sendable {
    /// Whether a connection has a chance at this moment.
    package var isReachable: Bool
    /// The interface that a connection would take, as `en0`; nil when there is none or it is not known.
    ///
    /// When it changes, connections over the old one are likely to be dead although the network was reachable
    /// all the time.
    package var interface: String?

    package init(isReachable: Bool, interface: String? = nil) {
        self.isReachable = isReachable
        self.interface = interface
    }
}

/// Tells when the way to the network changes, where the platform knows; a hint, never a reason to give up.
///
/// For whoever waits to connect again: a network that has come back is worth an attempt at once.
package protocol Reachability: AnyObject, Sendable {
    /// Begins to report: what is known first, then each change, one at a time and in order. To be called once.
    func start(_ report: @escaping @Sendable (NetworkReach) -> Void)

    /// Ends the reports; one that is under way at this moment may still be heard.
    func stop()
}
