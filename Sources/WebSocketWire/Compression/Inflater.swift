import CWaybillZlib
import WireCore

/// Decompresses messages with the system's zlib, piece by piece, up to a limit.
///
/// `@unchecked Sendable`, because: only the connection value that made a stream uses it, on one thread at a time, under
/// its driver's lock.
final class Inflater: @unchecked Sendable {
    // Made by zlib in `init` and freed in `deinit`: valid as long as the object.
    private let stream: UnsafeMutableRawPointer
    private let keepsContext: Bool

    /// Makes a decompressor; nil without zlib or memory.
    ///
    /// - Parameters:
    ///   - windowBits: The peer's window, as a power of two from 8 to 15.
    ///   - keepsContext: Whether the peer may refer to earlier messages.
    init?(windowBits: Int, keepsContext: Bool) {
        guard let stream = waybill_inflater_create(Int32(windowBits)) else { return nil }
        self.stream = stream
        self.keepsContext = keepsContext
    }

    deinit {
        waybill_inflater_destroy(stream)
    }

    /// Decompresses a piece of a message and appends the result.
    ///
    /// - Parameters:
    ///   - piece: The piece.
    ///   - output: The buffer to append to.
    ///   - limit: The number of bytes that `output` may hold in total.
    /// - Throws: `invalidCompressedData`, `messageTooBig`.
    func decompress(
        _ piece: UnsafeRawBufferPointer,
        into output: inout ByteWriter,
        limit: Int
    ) throws(WebSocketViolation) {
        var left = piece
        while true {
            // One byte above the limit is enough to detect an excess.
            let allowed = max(limit - output.count, 0)
            let space = min(max(left.count * 2, 1_024), allowed < .max ? allowed + 1 : allowed)
            var consumed = 0
            var produced = 0
            var result = WAYBILL_ZLIB_OK
            output.append(upTo: space) { target in
                // In bounds: zlib gets the sizes of both buffers.
                result = Int(
                    waybill_inflate(
                        stream,
                        left.bindMemory(to: UInt8.self).baseAddress,
                        left.count,
                        target.bindMemory(to: UInt8.self).baseAddress,
                        target.count,
                        &consumed,
                        &produced
                    )
                )
                return produced
            }
            guard result != WAYBILL_ZLIB_ERROR else { throw .invalidCompressedData }
            guard output.count <= limit else { throw .messageTooBig(maximum: limit) }
            left = UnsafeRawBufferPointer(rebasing: left.dropFirst(consumed))
            if result == WAYBILL_ZLIB_END {
                // The peer ended its deflate stream and may begin another (RFC 7692, 7.2.3.4).
                guard waybill_inflater_continue(stream) == WAYBILL_ZLIB_OK else {
                    throw .invalidCompressedData
                }
                if left.isEmpty { return }
                continue
            }
            if left.isEmpty, produced < space { return }
            guard consumed > 0 || produced > 0 else { throw .invalidCompressedData }
        }
    }

    func finishMessage(into output: inout ByteWriter, limit: Int) throws(WebSocketViolation) {
        try Deflater.tail.withUnsafeBytes { tail throws(WebSocketViolation) in
            try decompress(tail, into: &output, limit: limit)
        }
        if !keepsContext { _ = waybill_inflater_reset(stream) }
    }
}

/// Whether zlib is available on this machine.
package enum Compression {
    package static var isAvailable: Bool { waybill_zlib_is_available() != 0 }
}
