import CWaybillZlib
package import WireCore

/// Undoes the content coding of a body, piece by piece: gzip and deflate (RFC 9110, 8.4.1), by the system's zlib.
///
/// `@unchecked Sendable`, because: a stream is owned by the one connection value that made it, which is used
/// by one thread at a time, behind its driver's lock.
package final class HTTPContentDecoder: @unchecked Sendable {
    // Made by zlib in `init`, or in `decideForm(by:)` in its place, and freed in `deinit`: valid as long as the object.
    private var stream: UnsafeMutableRawPointer
    /// The first bytes, until they tell which of its two forms `deflate` has; nil once that is known.
    private var front: [UInt8]?
    private var hasBegun = false
    private var hasEnded = false

    /// Whether the data was cut short: it has begun and not come to its own end.
    package var isIncomplete: Bool { hasBegun && !hasEnded }

    /// What a client may say that it accepts; nil where there is no zlib.
    package static var acceptedCodings: String? {
        waybill_zlib_is_available() != 0 ? "gzip, deflate" : nil
    }

    /// Nil for a coding that is not known, or where there is no zlib.
    /// - Parameter coding: The coding, such as `gzip`.
    package init?(coding: String) {
        guard Self.isKnown(coding), let stream = waybill_gunzipper_create() else { return nil }
        self.stream = stream
        front = HTTPSyntax.areSameName("deflate", coding) ? [] : nil
    }

    /// Whether a coding is one of those that this type undoes, with or without a zlib.
    package static func isKnown(_ coding: String) -> Bool {
        ["gzip", "x-gzip", "deflate"].contains { HTTPSyntax.areSameName($0, coding) }
    }

    deinit {
        waybill_inflater_destroy(stream)
    }

    /// How much is decoded at a time: 16 KiB.
    private static let chunkSize = 16_384

    /// Goes on with another gzip member behind the last one (RFC 1952, 2.2), told by its first byte; anything
    /// else there is nobody's.
    private func beginNextMember(_ rest: UnsafeRawBufferPointer) -> Bool {
        guard rest.first == 0x1F, waybill_inflater_reset(stream) == WAYBILL_ZLIB_OK else {
            return false
        }
        hasEnded = false
        return true
    }

    /// Decodes a piece, however much comes of it.
    ///
    /// - Parameters:
    ///   - piece: The piece.
    ///   - take: Given what comes of it, a part at a time; says whether it wants more.
    /// - Returns: Whether the data made sense and all of it was wanted.
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

    /// What is left to do with a piece after a part of it.
    package enum Progress: Sendable {
        /// There is more to come of it.
        case more
        /// All of it has been decoded.
        case complete
        /// The data makes no sense.
        case broken
    }

    /// Decodes until a part has come of at most 16 KiB, so that the caller can stop half-way.
    ///
    /// - Parameters:
    ///   - piece: The piece; what has been used is taken from its front.
    ///   - take: Given the part, which may be empty.
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
                // In bounds: zlib is told the sizes of both.
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

    /// Finds out from its first two bytes which form a body of the coding `deflate` has.
    ///
    /// The coding is zlib's format (RFC 9110, 8.4.1.2). Some servers send deflate data without its header instead.
    /// - Parameter piece: The piece; replaced by what there is to decode now.
    /// - Returns: Whether that has worked, or needs more bytes.
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

    /// Whether data begins as zlib's format or gzip does (RFC 1950, 2.2; RFC 1952, 2.3.1).
    private static func hasHeader(_ data: [UInt8]) -> Bool {
        let isZlib =
            data[0] & 0x0F == 8 && data[0] >> 4 <= 7
            && (UInt16(data[0]) << 8 | UInt16(data[1])) % 31 == 0
        return isZlib || data[0] == 0x1F && data[1] == 0x8B
    }
}
