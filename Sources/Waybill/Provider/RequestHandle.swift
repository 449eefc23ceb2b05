/// Ends what was started with a handler: a request, a subscription, or a source of hints.
///
/// Nothing ends when the handle is released.
public struct RequestHandle: Sendable {
    private let end: @Sendable () -> Void

    /// Makes a handle, for a source of hints or for a stand-in of an app's own client.
    ///
    /// - Parameter end: Ends the operation. It may be called more than once, from any thread.
    public init(_ end: @escaping @Sendable () -> Void) {
        self.end = end
    }

    /// Ends the operation.
    ///
    /// The handler of a provider's request or subscription is not called again.
    public func cancel() {
        end()
    }
}
