// Replies and messages of types that are not `Decodable`.
extension Provider {
    /// Performs an entry and returns its outcome as a type that is not `Decodable`.
    ///
    /// ```swift
    /// let _: Void = try await provider.request(.say(message))          // confirmed, without a value
    /// let receipt: Receipt = try await provider.request(.say(message)) // the peer's answer
    /// let reply = try await provider.request(.quote(q), as: Message.self)
    /// let fare = try await provider.request(.quote(q), as: FareProto.self) // by a decoder of its own
    /// ```
    ///
    /// - Parameters:
    ///   - entry: For `Void` and `Receipt`, any entry but a subscription; for other types, one with the command `send`.
    ///   - type: `Void` or `Receipt`, which ask for no reply; `Message`, the undecoded reply; or a type that one of the
    ///     provider's decoders makes.
    /// - Returns: The value.
    /// - Throws: As ``request(_:)``; `decodingFailed`. Before anything is sent, `unsupported` for a command without a
    ///   reply and `invalidEntry` for a type that no decoder makes.
    @_disfavoredOverload
    public func request<Reply: Sendable>(
        _ entry: Entry,
        as type: Reply.Type = Reply.self
    ) async throws -> Reply {
        if Receipt.answers(type) {
            return try (try await self.request(entry) as Receipt).value(as: type)
        }
        let request = try makeRequest(entry, for: .reply)
        try decoding.check(type, request)
        return try await runner.reply(to: request) { reply throws(WaybillError) in
            try decoding.decodeAny(type, from: reply)
        }
    }

    /// Subscribes, and decodes each message to a type that one of the provider's decoders makes.
    ///
    /// Otherwise as ``messages(_:as:)-(_,Value.Type)``. A type that no decoder makes is `invalidEntry`, before anything is
    /// sent.
    @_disfavoredOverload
    public func messages<Value: Sendable>(
        _ entry: Entry,
        as type: Value.Type = Value.self
    ) async throws -> Messages<Value> {
        let request = try makeRequest(entry, for: .messages)
        let decoding = decoding
        try decoding.check(type, request)
        return try await runner.messages(of: request) { message throws(WaybillError) in
            try decoding.decodeAny(type, from: message)
        }
    }
}
