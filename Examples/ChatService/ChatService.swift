public import Waybill

/// A service layer over any transport: what the rest of an app sees of the chat.
public struct ChatService: Sendable {
    private let provider: Provider<ChatEntry>

    /// Makes the service.
    /// - Parameter provider: MQTT in the app, a mock in its tests.
    public init(provider: Provider<ChatEntry>) {
        self.provider = provider
    }

    /// Connects. Without this call, the first request connects.
    /// - Throws: `WaybillError`.
    public func connect() async throws {
        try await provider.connect()
    }

    /// Connects, runs a body, sends what is under way, and closes the connection.
    /// - Throws: `WaybillError`, and what the body throws.
    public func withConnection(_ body: () async throws -> Void) async throws {
        try await provider.withConnection { try await body() }
    }

    /// Hears what is said in a room, until the messages are let go.
    /// - Throws: `WaybillError`.
    public func join(_ room: String) async throws -> Messages<ChatMessage> {
        try await provider.messages(.join(room: room))
    }

    /// Says something in a room; returns when the server has it.
    /// - Throws: `WaybillError`.
    public func say(_ text: String, as sender: String, in room: String) async throws {
        try await provider.request(.say(ChatMessage(sender: sender, text: text), room: room))
    }
}
