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
        if let make = Self.receiptMaker(type) {
            return try make(try await self.request(entry) as Receipt)
        }
        let request = try replyRequest(entry)
        try decoding.check(type, request)
        let reply = try await reply(to: request)
        do {
            return try decoding.decodeAny(type, from: reply)
        } catch {
            throw runner.configuration.serviceFailure(in: reply, to: request, error)
        }
    }

    /// Subscribes as an entry says, and decodes each message to a type that is not `Decodable`.
    ///
    /// - Parameters:
    ///   - entry: An entry with the command `subscribe`.
    ///   - type: The type of each message: a type that one of the provider's decoders makes.
    /// - Returns: The values, after the peer has confirmed the subscription. A message that cannot be decoded is thrown
    ///   in its place and ends nothing: see ``Messages``.
    /// - Throws: As ``messages(_:)``; before anything is sent, `invalidEntry` for a type that no decoder makes.
    @_disfavoredOverload
    public func messages<Value: Sendable>(
        _ entry: Entry,
        as type: Value.Type = Value.self
    ) async throws -> Messages<Value> {
        let decoding = decoding
        let (messages, context) = try await subscription(entry) {
            request throws(WaybillError) in try decoding.check(type, request)
        }
        return Messages<Value>(
            handle: messages.handle,
            intercept: runner.isPlain ? nil : interception(context)
        ) { message throws(WaybillError) in
            try decoding.decodeAny(type, from: message)
        }
    }

    // MARK: Replies

    /// The request of an entry with a reply.
    ///
    /// - Throws: `unsupported` for a command without a reply.
    func replyRequest(_ entry: Entry) throws(WaybillError) -> Request {
        let request = try Request.making(
            entry,
            expectsReply: true,
            encoders: runner.configuration.encoders
        )
        try refuseSubscription(request)
        guard request.command.hasReply else {
            throw Self.noReply(request.topic, request.command)
        }
        return request
    }

    /// The peer's reply, after the interceptors.
    func reply(to request: Request) async throws -> Message {
        let receipt = try await runner.perform(request)
        guard let reply = receipt.reply else {
            throw WaybillError(
                .decodingFailed,
                "the peer sent no reply",
                topic: request.topic,
                command: request.command.name
            )
        }
        return try await runner.interception.chain.receive(
            reply,
            context: runner.interception.context(of: request)
        )
    }

    private static func noReply(_ topic: String?, _ command: EntryCommand) -> WaybillError {
        WaybillError(
            .unsupported,
            "the command \(command.name) has no reply: ask for a Receipt, or for nothing (Void)",
            topic: topic,
            command: command.name
        )
    }

    /// Returns a closure that makes a value from a receipt, for types that ask for no reply; nil for any other type.
    private static func receiptMaker<Value>(
        _ type: Value.Type
    ) -> ((Receipt) throws(WaybillError) -> Value)? {
        guard type == Void.self || type == Receipt.self || type == Receipt?.self else { return nil }
        return { receipt throws(WaybillError) in
            if type == Void.self, let nothing = () as? Value { return nothing }
            guard let value = receipt as? Value else {
                throw WaybillError(.decodingFailed, "a receipt is not a \(type)")
            }
            return value
        }
    }
}

extension EntryCommand {
    /// Whether a peer may answer the command with a reply.
    var hasReply: Bool {
        guard case .send = self else { return false }
        return true
    }
}
