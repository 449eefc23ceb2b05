public import Waybill

/// A service over any transport. The rest of an app sees only this layer of the chat.
public struct ChatService: Sendable {
    private let provider: Provider<ChatEntry>

    /// Makes the service.
    ///
    /// - Parameter provider: A provider over MQTT in the app, over a mock in its tests.
    public init(provider: Provider<ChatEntry>) {
        self.provider = provider
    }

    /// Connects. Without this call, the first request connects.
    ///
    /// - Throws: `WaybillError`.
    public func connect() async throws {
        try await provider.connect()
    }

    /// Connects, runs the body, waits for the sends under way, and disconnects.
    ///
    /// - Throws: `WaybillError`, and the errors of the body.
    public func withConnection(_ body: () async throws -> Void) async throws {
        try await provider.withConnection { try await body() }
    }

    /// Receives the messages of a room until the sequence is released.
    ///
    /// - Throws: `WaybillError`.
    public func join(_ room: String) async throws -> Messages<ChatMessage> {
        try await provider.messages(.join(room: room))
    }

    /// Sends a message to a room. Returns when the server has acknowledged it.
    ///
    /// - Throws: `WaybillError`.
    public func say(_ text: String, as sender: String, in room: String) async throws {
        try await provider.request(.say(ChatMessage(sender: sender, text: text), room: room))
    }
}
