public import Waybill

/// The chat for an app with completion handlers.
public struct ChatClient: Sendable {
    private let provider: Provider<ChatEntry>

    /// Makes the client.
    ///
    /// - Parameters:
    ///   - transport: STOMP in the app, a mock in its tests.
    ///   - interceptor: Adds the token.
    public init(transport: any Transport, interceptor: any Interceptor) {
        provider = Provider(transport: transport).intercepted(interceptor)
    }

    /// Opens the connection. The server's answer has no body, so the text is empty.
    public func connect(_ completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
        provider.request(of: String.self, entry: .connect, completion)
    }

    /// Receives messages until the returned handle is cancelled.
    public func subscribe(
        _ onMessage: @escaping @Sendable (Result<ChatMessage, any Error>) -> Void
    ) -> RequestHandle {
        provider.request(of: ChatMessage.self, entry: .subscribe, onMessage)
    }

    /// Sends a message. Calls the handler when the server's receipt has arrived.
    public func send(
        _ message: ChatMessage,
        _ completion: @escaping @Sendable (Result<Receipt, any Error>) -> Void
    ) {
        provider.request(of: Receipt.self, entry: .send(message), completion)
    }

    /// Closes the connection.
    public func disconnect(_ completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
        provider.request(of: String.self, entry: .disconnect, completion)
    }
}
