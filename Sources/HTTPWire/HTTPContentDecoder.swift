import CWaybillZlib
package import WireCore

/// Decodes the content coding of a body, piece by piece: gzip and deflate (RFC 9110, 8.4.1), by the system's zlib.
///
/// `@unchecked Sendable`, because: only the connection value that made a stream uses it, on one thread at a time, under
/// its driver's lock.
package final class HTTPContentDecoder: @unchecked Sendable {
    // Made by zlib in `init`, or in `decideForm(by:)` as a replacement, and freed in `deinit`: valid as long as the
    // object.
    private var stream: UnsafeMutableRawPointer
    /// The first bytes, until they determine which of its two forms `deflate` has; nil after that.
    private var front: [UInt8]?
    private var hasBegun = false
    private var hasEnded = false

    /// Whether the data was cut short: it has begun and not reached its own end.
    package var isIncomplete: Bool { hasBegun && !hasEnded }

    /// The codings that a client can accept, for its request; nil without zlib.
    package static var acceptedCodings: String? {
        waybill_zlib_is_available() != 0 ? "gzip, deflate" : nil
    }

    /// Makes a decoder; nil for an unknown coding, or without zlib.
    ///
    /// - Parameter coding: The coding, such as `gzip`.
    package init?(coding: String) {
        guard Self.isKnown(coding), let stream = waybill_gunzipper_create() else { return nil }
        self.stream = stream
        front = HTTPSyntax.areSameName("deflate", coding) ? [] : nil
    }

    /// Whether this type decodes a coding, with or without zlib.
    package static func isKnown(_ coding: String) -> Bool {
        ["gzip", "x-gzip", "deflate"].contains { HTTPSyntax.areSameName($0, coding) }
    }

    deinit {
        waybill_inflater_destroy(stream)
    }

    /// The size of a decoded part: 16 KiB.
    private static let chunkSize = 16_384

    /// Continues with another gzip member after the last one (RFC 1952, 2.2), recognised by its first byte.
    ///
    /// Any other data there is ignored.
    private func beginNextMember(_ rest: UnsafeRawBufferPointer) -> Bool {
        guard rest.first == 0x1F, waybill_inflater_reset(stream) == WAYBILL_ZLIB_OK else {
            return false
        }
        hasEnded = false
        return true
    }

    /// Decodes a whole piece.
    ///
    /// - Parameters:
    ///   - piece: The piece.
    ///   - take: Receives the decoded data in parts; returns whether it wants more.
    /// - Returns: Whether the data was valid and all of it was wanted.
    package func decode(_ piece: ByteSlice, _ take: (UnsafeRawBufferPointer) -> Bool) -> Bool {
        var rest = piece
        var isWanted = true
        while true {
            switch decodePart(of: &rest, { isWanted = take($0) }) {
            case .broken: return false
            case .more: guard isWanted else { return false }
            case .complete: return isWanted
            }
        }
    }

    /// The state of a piece after decoding a part of it.
    package enum Progress: Sendable {
        /// More can be decoded.
        case more
        /// The piece is completely decoded.
        case complete
        /// The data is invalid.
        case broken
    }

    /// Decodes until there is a part of at most 16 KiB, so that the caller can stop half-way.
    ///
    /// - Parameters:
    ///   - piece: The piece; the used bytes are removed from its front.
    ///   - take: Receives the part, which may be empty.
    /// - Returns: Whether to call again with the same piece.
    package func decodePart(
        of piece: inout ByteSlice,
        _ take: (UnsafeRawBufferPointer) -> Void
    ) -> Progress {
        if piece.count > 0 { hasBegun = true }
        guard decideForm(by: &piece) else { return .broken }
        guard front == nil else { return .complete }
        if hasEnded, !piece.withUnsafeBytes(beginNextMember) { return .complete }
        var consumed = 0
        let progress = piece.withUnsafeBytes { bytes -> Progress in
            withUnsafeTemporaryAllocation(byteCount: Self.chunkSize, alignment: 16) { chunk in
                var produced = 0
                // In bounds: zlib gets the sizes of both buffers.
                let result = waybill_inflate(
                    stream,
                    bytes.bindMemory(to: UInt8.self).baseAddress,
                    bytes.count,
                    chunk.bindMemory(to: UInt8.self).baseAddress,
                    chunk.count,
                    &consumed,
                    &produced
                )
                guard result != WAYBILL_ZLIB_ERROR else { return .broken }
                take(UnsafeRawBufferPointer(rebasing: chunk[..<produced]))
                if result == WAYBILL_ZLIB_END {
                    hasEnded = true
                    return .more
                }
                if consumed == bytes.count, produced < chunk.count { return .complete }
                return consumed == 0 && produced == 0 ? .broken : .more
            }
        }
        piece = piece.dropFirst(consumed)
        return progress
    }

    /// Determines from the first two bytes which form a body with the coding `deflate` has.
    ///
    /// The coding is zlib's format (RFC 9110, 8.4.1.2). Some servers send deflate data without that header.
    ///
    /// - Parameter piece: The piece; replaced by the data to decode now.
    /// - Returns: False if the data is invalid.
    private func decideForm(by piece: inout ByteSlice) -> Bool {
        guard let front else { return true }
        let gathered = front + piece.bytes
        piece = .empty
        guard gathered.count >= 2 else {
            self.front = gathered
            return true
        }
        self.front = nil
        if !Self.hasHeader(gathered) {
            guard let raw = waybill_inflater_create(15) else { return false }
            waybill_inflater_destroy(stream)
            stream = raw
        }
        piece = ByteSlice(copying: gathered)
        return true
    }

    /// Whether data begins like zlib's format or gzip (RFC 1950, 2.2; RFC 1952, 2.3.1).
    private static func hasHeader(_ data: [UInt8]) -> Bool {
        let isZlib =
            data[0] & 0x0F == 8 && data[0] >> 4 <= 7
            && (UInt16(data[0]) << 8 | UInt16(data[1])) % 31 == 0
        return isZlib || data[0] == 0x1F && data[1] == 0x8B
    }
}
