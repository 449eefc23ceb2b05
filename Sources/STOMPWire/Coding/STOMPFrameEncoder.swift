package import WireCore

package enum STOMPFrameEncoder {
    /// Writes a frame.
    ///
    /// If there is a body, content-length is the first header, unless a body without NUL goes without it. The other headers
    /// follow in their order. ``STOMPFrameEnd`` relies on that to split the bytes into frames without decoding them.
    ///
    /// - Parameters:
    ///   - command: The command.
    ///   - headers: The headers, without content-length.
    ///   - body: The body, copied once.
    ///   - hasLength: Whether a body has a content-length; one without it must not contain NUL.
    ///   - version: The version of the connection; nil before it is agreed.
    ///   - writer: The buffer to append to.
    /// - Throws: `STOMPEncodingError`; nothing was written then.
    package static func encode(
        _ command: STOMPCommand,
        _ headers: STOMPHeaders,
        body: some WireBytes,
        hasLength: Bool = true,
        version: STOMPVersion?,
        into writer: inout ByteWriter
    ) throws(STOMPEncodingError) {
        guard command != .nack || version != .v1_0 else { throw .commandNotAllowed(.nack) }
        let length = body.wireByteCount
        guard length == 0 || command.allowsBody else { throw .bodyNotAllowed(command) }
        let start = writer.count
        writer.append(command.name.bytes)
        writer.append(UInt8(ascii: "\n"))
        if length > 0, hasLength {
            writer.append(("content-length:" as StaticString).bytes)
            writer.append(contentsOf: String(length).utf8)
            writer.append(UInt8(ascii: "\n"))
        }
        let rules = STOMPHeaderEncoding(version: version, command: command)
        do throws(STOMPEncodingError) {
            for field in headers.fields { try rules.write(field, into: &writer) }
        } catch {
            writer.truncate(to: start)
            throw error
        }
        writer.append(UInt8(ascii: "\n"))
        if length > 0 {
            writer.reserve(total: length + 1)
            writer.append(body)
        }
        writer.append(0 as UInt8)
    }
}

/// The encoding of a frame's headers (Value Encoding).
struct STOMPHeaderEncoding {
    private let hasEscapes: Bool
    private let version: STOMPVersion?

    init(version: STOMPVersion?, command: STOMPCommand) {
        hasEscapes = command.hasEscapes(in: version)
        self.version = version
    }

    /// Writes a header and its line end; after an error the caller must remove what was written.
    func write(
        _ field: STOMPHeaders.Field,
        into writer: inout ByteWriter
    ) throws(STOMPEncodingError) {
        guard !field.name.isEmpty else { throw .headerNameEmpty }
        guard field.name != STOMPHeaderName.contentLength else { throw .contentLengthNotAllowed }
        try write(field.name, of: field, isName: true, into: &writer)
        writer.append(UInt8(ascii: ":"))
        try write(field.value, of: field, isName: false, into: &writer)
        writer.append(UInt8(ascii: "\n"))
    }

    private func write(
        _ text: String,
        of field: STOMPHeaders.Field,
        isName: Bool,
        into writer: inout ByteWriter
    ) throws(STOMPEncodingError) {
        let isPlain: Bool? = text.utf8.withContiguousStorageIfAvailable { bytes in
            guard !bytes.contains(where: Self.isSpecial) else { return false }
            writer.append(UnsafeRawBufferPointer(bytes))
            return true
        }
        guard isPlain != true else { return }
        for byte in text.utf8 {
            guard Self.isSpecial(byte) else {
                writer.append(byte)
                continue
            }
            try check(byte, of: field, isName: isName)
            if hasEscapes, let letter = STOMPEscapes.letter(for: byte) {
                writer.append(UInt8(ascii: "\\"))
                writer.append(letter)
            } else {
                writer.append(byte)
            }
        }
    }

    /// Whether a byte has a meaning in a head, or is not allowed there.
    private static func isSpecial(_ byte: UInt8) -> Bool {
        byte == 0 || byte == UInt8(ascii: ":") || byte == UInt8(ascii: "\\")
            || byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r")
    }

    private func check(
        _ byte: UInt8,
        of field: STOMPHeaders.Field,
        isName: Bool
    ) throws(STOMPEncodingError) {
        switch byte {
        case 0: throw .nullCharacter(field.name)
        case UInt8(ascii: "\r"):
            guard hasEscapes, version == .v1_2 else { throw .lineBreakNotAllowed(field.name) }
        case UInt8(ascii: "\n"):
            guard hasEscapes else { throw .lineBreakNotAllowed(field.name) }
        case UInt8(ascii: ":"):
            guard hasEscapes || !isName else { throw .colonNotAllowed(field.name) }
        default: break
        }
    }
}
