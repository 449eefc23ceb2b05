public import Waybill

/// A service layer over any transport: what the rest of an app sees of the chat.
public struct ChatService: Sendable {
    private let provider: Provider<ChatEntry>

    /// Makes the service.
    /// - Parameter provider: MQTT in the app, a mock in its tests.
    public init(provider: Provider<ChatEntry>) {
        self.provider = provider
    }

    /// Opens the connection.
    /// - Throws: `WaybillError`.
    public func connect() async throws {
        try await provider.request(.connect)
    }

    /// Hears what is said in a room.
    /// - Throws: `WaybillError`.
    public func join(_ room: String) async throws -> Messages<ChatMessage> {
        try await provider.messages(.join(room: room))
    }

    /// Says something in a room; returns when the server has it.
    /// - Throws: `WaybillError`.
    public func say(_ text: String, as sender: String, in room: String) async throws {
        try await provider.request(.say(ChatMessage(sender: sender, text: text), room: room))
    }

    /// Stops hearing a room.
    /// - Throws: `WaybillError`.
    public func leave(_ room: String) async throws {
        try await provider.request(.leave(room: room))
    }

    /// Closes the connection.
    /// - Throws: `WaybillError`.
    public func disconnect() async throws {
        try await provider.request(.disconnect)
    }
}
