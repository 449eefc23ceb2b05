import WireCore

/// Tells text from bytes, for servers that take every message with a content-length for bytes.
enum STOMPText {
    /// Whether a body is text by its content type, and can be sent without a content-length.
    static func isText(_ body: some WireBytes, _ headers: STOMPHeaders) -> Bool {
        guard let type = headers.first(STOMPHeaderName.contentType), isText(type) else {
            return false
        }
        var isText = false
        body.withWireBytes { bytes in
            let result = UTF8Validation.scan(bytes)
            isText = result.isWellFormed && !result.containsNull
        }
        return isText
    }

    /// Whether a media type is text: `text`, JSON, XML, or based on one of these (RFC 6838, 4.2.8).
    private static func isText(_ contentType: String) -> Bool {
        let type = contentType.utf8.prefix { $0 != UInt8(ascii: ";") && $0 != UInt8(ascii: " ") }
            .map { byte in
                byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") ? byte | 0x20 : byte
            }
        return type.starts(with: "text/".utf8)
            || ["application/json", "application/xml"].contains { type.elementsEqual($0.utf8) }
            || ["+json", "+xml"].contains { type.suffix($0.utf8.count).elementsEqual($0.utf8) }
    }
}
