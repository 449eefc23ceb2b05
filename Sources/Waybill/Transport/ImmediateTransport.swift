/// A transport that can take a request without making the caller wait, so that many requests follow in order.
///
/// A transport that does not conform gets ``Transport/perform(_:)`` calls, one after another.
package protocol ImmediateTransport: Transport {
    /// Takes a request, if that is possible at once.
    ///
    /// A request that was taken is sent before later ones.
    ///
    /// - Parameters:
    ///   - request: The request, after the interceptors.
    ///   - completion: Called once with the result or error of ``Transport/perform(_:)``, possibly before this method
    ///     returns. It is not called after `notNow` and `full`. It must neither wait nor call the transport.
    /// - Returns: The outcome of the submission.
    func submit(
        _ request: Request,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) -> Submission
}

/// The outcome of submitting a request.
package enum Submission: Sendable {
    /// Nothing was done: perform the request instead, which may need a connection first.
    case notNow
    /// The request was taken or refused, and the completion is called; the closure withdraws the request.
    case taken(withdraw: (@Sendable () -> Void)?)
    /// The request was sent and needs no acknowledgement, but the send buffer is full: the closure waits for room.
    ///
    /// The closure throws only `CancellationError`; the request stays sent.
    case full(wait: @Sendable () async throws -> Void)
}
