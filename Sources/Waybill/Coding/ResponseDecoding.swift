#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Turns messages into the type that the caller asked for.
struct ResponseDecoding: Sendable {
    private let decoders: [any BodyDecoder]
    /// The first decoder, if it is the JSON decoder: it is asked without an array of candidates.
    private let json: JSONBodyDecoder?

    init(decoders: [any BodyDecoder]) {
        self.decoders = decoders
        json = decoders.first as? JSONBodyDecoder
    }

    /// Refuses a type that no decoder can make, before anything is sent.
    ///
    /// - Parameters:
    ///   - type: The type that the caller asks for.
    ///   - request: The request, which the error names.
    /// - Throws: `invalidEntry`.
    func check(_ type: Any.Type, _ request: Request) throws(WaybillError) {
        guard !makes(type) else { return }
        throw WaybillError(
            .invalidEntry,
            FreeDecodable.isIsolated(type)
                ? """
                the conformance of \(type) to Decodable belongs to an actor, and messages are decoded anywhere: \
                declare the type nonisolated
                """
                : """
                no decoder of this provider makes a \(type): make it Decodable, or add a decoder for it to \
                ProviderConfiguration.decoders
                """,
            topic: request.topic,
            command: request.command.name
        )
    }

    /// Whether messages can become values of a type.
    func makes(_ type: Any.Type) -> Bool {
        Self.isTakenAsItIs(type) || decoders.contains { $0.decodes(type) }
    }

    /// Decodes a message to a type, if that can be made at all.
    ///
    /// - Returns: The value; nil if the type cannot be made, or the message is no such value.
    func value<Value>(_ type: Value.Type, from message: Message) -> Value? {
        makes(type) ? try? decode(type, from: message) : nil
    }

    /// Decodes a message to a type that can be made: see ``makes(_:)``.
    ///
    /// Text, data, bytes and the message itself are returned as they are, without a decoder. Decoders that accept the
    /// content type are tried first, then the others, each in order.
    ///
    /// - Throws: `decodingFailed`, with the error of the decoder that was tried first.
    func decode<Value>(
        _ type: Value.Type,
        from message: Message
    ) throws(WaybillError) -> Value {
        if Self.isDirect(type) { return try direct(type, from: message) }
        if type == Message.self, let itself = message as? Value { return itself }
        // The case of nearly all messages: the first decoder accepts and decodes it, without an array of candidates.
        guard let json, json.accepts(contentType: message.contentType) else {
            return try decode(type, from: message, trying: decoders[...], after: nil)
        }
        let failure: (any Error)?
        do {
            if let value = try json.decode(type, from: message) { return value }
            failure = nil
        } catch {
            failure = error
        }
        return try decode(type, from: message, trying: decoders.dropFirst(), after: failure)
    }

    /// Tries decoders in order.
    ///
    /// - Parameters:
    ///   - type: The type to decode to.
    ///   - message: The message.
    ///   - candidates: The decoders.
    ///   - failure: The error of a decoder that was tried before.
    /// - Returns: The value.
    /// - Throws: `decodingFailed`.
    private func decode<Value>(
        _ type: Value.Type,
        from message: Message,
        trying candidates: ArraySlice<any BodyDecoder>,
        after failure: (any Error)?
    ) throws(WaybillError) -> Value {
        var cause = failure
        let accepting = candidates.filter { $0.accepts(contentType: message.contentType) }
        let others = candidates.filter { !$0.accepts(contentType: message.contentType) }
        for decoder in accepting + others {
            do {
                if let value = try decoder.decode(type, from: message) { return value }
            } catch {
                cause = cause ?? error
            }
        }
        throw WaybillError(
            .decodingFailed,
            message.body.isEmpty
                ? "the message is empty, and no \(type)" : "the message is not a \(type)",
            topic: message.topic,
            underlying: cause
        )
    }

    /// Whether no decoder is asked: text, data, bytes, and the message itself.
    static func isTakenAsItIs(_ type: Any.Type) -> Bool {
        isDirect(type) || type == Message.self
    }

    // Separate from the cast below: an optional of the caller's type would be looked up at each call.
    private static func isDirect(_ type: Any.Type) -> Bool {
        type == Data.self || type == [UInt8].self || type == String.self
    }

    private func direct<Value>(
        _ type: Value.Type,
        from message: Message
    ) throws(WaybillError) -> Value {
        if type == Data.self, let data = message.body.data as? Value { return data }
        if type == [UInt8].self, let bytes = message.body.bytes as? Value { return bytes }
        guard let text = message.text as? Value else {
            throw WaybillError(
                .decodingFailed,
                "the message is no text in its character set",
                topic: message.topic
            )
        }
        return text
    }
}
