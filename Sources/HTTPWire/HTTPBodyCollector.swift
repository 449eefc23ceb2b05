package import WireCore

/// The body of a response, gathered up to a limit and decoded if it is compressed.
package struct HTTPBodyCollector: Sendable {
    package private(set) var bytes: [UInt8] = []
    private let limit: Int
    private let decoder: HTTPContentDecoder?

    /// - Parameters:
    ///   - limit: How many decoded bytes are kept; at least 0.
    ///   - decoder: Decodes the body; nil for a body without a coding.
    package init(limit: Int, decoder: HTTPContentDecoder? = nil) {
        self.limit = max(limit, 0)
        self.decoder = decoder
    }

    /// The part of a refusal's body that is kept, in bytes: 64 KiB.
    package static let refusalLimit = 64 << 10

    /// Whether the limit is reached.
    package var isFull: Bool { bytes.count >= limit }

    /// Whether the coded data so far ends in the middle.
    package var isIncomplete: Bool { decoder?.isIncomplete ?? false }

    /// Adds a piece of the body as it was received.
    ///
    /// - Returns: Whether more is wanted: false at the limit, and after data that cannot be decoded.
    package mutating func append(_ piece: ByteSlice) -> Bool {
        func keep(_ part: UnsafeRawBufferPointer) -> Bool {
            bytes += part.prefix(limit - bytes.count)
            return bytes.count < limit
        }
        guard let decoder else { return piece.withUnsafeBytes(keep) }
        return decoder.decode(piece, keep)
    }
}
