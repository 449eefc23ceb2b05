#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Turns messages into what the caller asked for.
struct ResponseDecoding: Sendable {
    let decoders: [any BodyDecoder]

    /// Decodes a message.
    ///
    /// Text, data and bytes are themselves, never sent through a decoder. Of the decoders, those that
    /// accept the content type come first, then the others, each in order.
    /// - Throws: `decodingFailed`, with the error of the decoder that was tried first.
    func decode<Value: Decodable>(
        _ type: Value.Type,
        from message: Message
    ) throws(WaybillError) -> Value {
        if Self.isDirect(type) { return try direct(type, from: message) }
        // The way of nearly all messages: the first decoder accepts and decodes it, and no list is made.
        let contentType = message.contentType
        guard let first = decoders.first, first.accepts(contentType: contentType) else {
            return try decode(type, from: message, after: nil)
        }
        do {
            return try first.decode(type, from: message)
        } catch {
            return try decode(type, from: message, after: error)
        }
    }

    /// Asks the decoders, but for the first where that has failed already.
    private func decode<Value: Decodable>(
        _ type: Value.Type,
        from message: Message,
        after failure: (any Error)?
    ) throws(WaybillError) -> Value {
        let left = failure == nil ? decoders[...] : decoders.dropFirst()
        var cause = failure
        let accepting = left.filter { $0.accepts(contentType: message.contentType) }
        let others = left.filter { !$0.accepts(contentType: message.contentType) }
        for decoder in accepting + others {
            do {
                return try decoder.decode(type, from: message)
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

    // Apart from the cast below: an optional of the caller's type is looked up at each call.
    private static func isDirect(_ type: Any.Type) -> Bool {
        type == Data.self || type == [UInt8].self || type == String.self
    }

    private func direct<Value>(
        _ type: Value.Type,
        from message: Message
    ) throws(WaybillError) -> Value {
        if type == Data.self, let data = message.body.data as? Value { return data }
        if type == [UInt8].self, let bytes = message.body.bytes as? Value { return bytes }
        guard let text = message.body.text as? Value else {
            throw WaybillError(.decodingFailed, "the message is not UTF-8", topic: message.topic)
        }
        return text
    }
}
