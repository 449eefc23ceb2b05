// Replies and messages, after the interceptors.
extension RequestRunner {
    /// Performs a request and decodes the peer's reply.
    func reply<Reply>(
        to request: Request,
        _ decode: (Message) throws(WaybillError) -> Reply
    ) async throws -> Reply {
        let receipt = try await performAdapted(request)
        guard let reply = receipt.reply else {
            throw WaybillError(
                .decodingFailed,
                "the peer sent no reply",
                topic: request.topic,
                command: request.command.name
            )
        }
        return try await value(of: reply, to: request, decode)
    }

    /// Performs a request, and decodes the reply that its receipt has; without one, an empty message.
    ///
    /// - Throws: `decodingFailed`, also where the request expects a reply and there is none.
    func outcome<Value>(
        of request: Request,
        _ decode: (Message) throws(WaybillError) -> Value
    ) async throws -> Value {
        if request.expectsReply { return try await reply(to: request, decode) }
        let receipt = try await perform(request)
        if let reply = receipt.reply { return try await value(of: reply, to: request, decode) }
        do {
            return try decode(Message(topic: receipt.topic ?? "", headers: receipt.headers))
        } catch {
            throw WaybillError(
                .decodingFailed,
                request.command.hasReply
                    ? "no reply was asked for: a send awaits one with the option expectsReply"
                    : error.message,
                topic: request.topic,
                command: request.command.name,
                underlying: error.underlying
            )
        }
    }

    private func value<Value>(
        of reply: Message,
        to request: Request,
        _ decode: (Message) throws(WaybillError) -> Value
    ) async throws -> Value {
        let message = try await interception.chain.receive(
            reply,
            context: interception.context(of: request)
        )
        do {
            return try decode(message)
        } catch {
            throw configuration.serviceFailure(in: message, to: request, error)
        }
    }

    /// Subscribes.
    func messages(of request: Request) async throws -> Messages<Message> {
        let messages = try await subscribe(request)
        messages.handle.come(from: origin(topic: request.topic, command: request.command.name))
        return intercepted(messages, of: request)
    }

    /// Subscribes and decodes each message.
    func messages<Value>(
        of request: Request,
        _ decode: @escaping @Sendable (consuming Message) throws(WaybillError) -> Value
    ) async throws -> Messages<Value> {
        let messages = try await messages(of: request)
        return Messages(
            handle: messages.handle,
            intercept: isPlain ? nil : messages.intercept,
            decode: decode
        )
    }

    /// Every message that arrives at the transport.
    func allMessages(_ policy: BufferPolicy) throws(WaybillError) -> Messages<Message> {
        let messages = try transport.allMessages(policy)
        messages.handle.come(from: origin(topic: nil, command: nil))
        return intercepted(messages, of: Request(topic: nil, command: .subscribe))
    }

    private func origin(topic: String?, command: String?) -> MessageOrigin {
        MessageOrigin(
            topic: topic,
            command: command,
            events: interception.eventSource,
            decoders: configuration.decoders
        )
    }

    /// The same messages, which pass the interceptors before a consumer gets them.
    private func intercepted(
        _ messages: Messages<Message>,
        of request: Request
    ) -> Messages<Message> {
        guard !isPlain else { return messages }
        let context = interception.context(of: request)
        return Messages(
            handle: messages.handle,
            intercept: { [interception, observations] message in
                // Keeps the interceptors that observe events alive as long as the subscription.
                _ = observations
                interception.log(
                    .message,
                    .inbound,
                    name: "message",
                    topic: message.topic.withoutQuery,
                    "\(message)",
                    body: message.body
                )
                return try await interception.chain.receive(message, context: context)
            },
            decode: messages.decode
        )
    }
}

extension Receipt {
    /// Whether a caller that asks for a type wants no reply.
    static func answers(_ type: Any.Type) -> Bool {
        type == Void.self || type == Receipt.self || type == Receipt?.self
    }

    /// Nothing, or the receipt itself, as a type for which ``answers(_:)`` is true.
    func value<Value>(as type: Value.Type) throws(WaybillError) -> Value {
        if type == Void.self, let nothing = () as? Value { return nothing }
        guard let value = self as? Value else {
            throw WaybillError(.decodingFailed, "a receipt is not a \(type)")
        }
        return value
    }
}
