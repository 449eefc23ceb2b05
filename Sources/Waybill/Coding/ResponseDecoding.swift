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
        if let direct = try direct(type, from: message) { return direct }
        let accepting = decoders.filter { $0.accepts(contentType: message.contentType) }
        let others = decoders.filter { !$0.accepts(contentType: message.contentType) }
        var cause: (any Error)?
        for decoder in accepting + others {
            do {
                return try decoder.decode(type, from: message)
            } catch {
                cause = cause ?? error
            }
        }
        throw WaybillError(
            .decodingFailed,
            "the message is not a \(type)",
            topic: message.topic,
            underlying: cause
        )
    }

    private func direct<Value>(
        _ type: Value.Type,
        from message: Message
    ) throws(WaybillError) -> Value? {
        if type == Data.self { return message.body.data as? Value }
        if type == [UInt8].self { return message.body.bytes as? Value }
        guard type == String.self else { return nil }
        guard let text = message.body.text as? Value else {
            throw WaybillError(.decodingFailed, "the message is not UTF-8", topic: message.topic)
        }
        return text
    }
}
