/// An interceptor that also observes the events of the transport.
///
/// Events tell of connections, subscriptions, messages, drops, retries and tokens.
///
/// The protocol is separate so that without such an interceptor no event is made.
public protocol EventInterceptor: Interceptor {
    /// Observes an event.
    ///
    /// Called for every event of the provider's transport since the interceptor was added, from all providers of that
    /// transport. Calls come one after another, in order. Several interceptors see each event in the order in which
    /// they were added. The call runs on a thread of the package with no lock held, and should return soon. An
    /// interceptor that lags more than 4,096 events behind misses the oldest; see ``TransportEvents``.
    ///
    /// Calls continue as long as the provider, a copy of it, one of its calls or one of its subscriptions lives.
    ///
    /// - Parameter event: The event.
    func observe(_ event: TransportEvent)
}
