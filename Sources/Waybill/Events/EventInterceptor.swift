/// An interceptor that also sees what happens on the transport: connections, subscriptions, messages, drops,
/// retries and tokens.
///
/// Those who want that say so by this protocol, so that for all others no event is ever made.
public protocol EventInterceptor: Interceptor {
    /// Sees an event.
    ///
    /// Called for all events of the provider's transport, from when the interceptor was added, whichever provider
    /// they come from: one after another, in order, for each event in the order in which the interceptors
    /// were added, on the package's own threads and with no lock held. It should return soon: those who lag more
    /// than 4,096 events behind miss the oldest, see ``TransportEvents``. It goes on as long as the provider, a copy
    /// of it, one of its calls or one of its subscriptions lives.
    ///
    /// - Parameter event: The event.
    func observe(_ event: TransportEvent)
}
