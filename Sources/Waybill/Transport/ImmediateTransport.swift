/// A transport that takes a request over without making the caller wait, so that many can follow one another in order.
///
/// One that does not conform is asked to ``Transport/perform(_:)`` each, one after another.
package protocol ImmediateTransport: Transport {
    /// Takes a request over, if that can be done at once.
    ///
    /// What was taken over leaves before what is submitted next.
    ///
    /// - Parameters:
    ///   - request: The request, as the last interceptor left it.
    ///   - completion: Called once with what ``Transport/perform(_:)`` would return or throw, perhaps before this returns;
    ///     not called after `notNow` and `full`. Must neither wait nor call the transport.
    /// - Returns: What has become of it.
    func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission
}

/// What has become of a request that was submitted.
package enum Submission: Sendable {
    /// Nothing was done with it: to be performed, which may need a connection first.
    case notNow
    /// It was taken over or refused, and the completion is called; the closure withdraws it.
    case taken(withdraw: (@Sendable () -> Void)?)
    /// It was sent, and nothing acknowledges it, but too much waits to leave: the closure waits for room.
    ///
    /// The closure throws `CancellationError` alone; what was sent stays sent.
    case full(wait: @Sendable () async throws -> Void)
}
