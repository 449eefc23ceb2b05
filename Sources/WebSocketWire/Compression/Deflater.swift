import CWaybillZlib
import WireCore

/// Compresses messages with the system's zlib.
///
/// `@unchecked Sendable`, because: only the connection value that made a stream uses it, on one thread at a time, under
/// its driver's lock.
final class Deflater: @unchecked Sendable {
    // Made by zlib in `init` and freed in `deinit`: valid as long as the object.
    private let stream: UnsafeMutableRawPointer
    private let keepsContext: Bool

    /// Makes a compressor; nil without zlib or memory.
    ///
    /// - Parameters:
    ///   - windowBits: The window, as a power of two from 9 to 15.
    ///   - keepsContext: Whether a message may refer to earlier ones.
    init?(windowBits: Int, keepsContext: Bool) {
        // 6 and 8: zlib's default balance of time, memory and size.
        guard let stream = waybill_deflater_create(6, Int32(windowBits), 8) else { return nil }
        self.stream = stream
        self.keepsContext = keepsContext
    }

    deinit {
        waybill_deflater_destroy(stream)
    }

    /// The four bytes that end a sync flush, which are not sent (RFC 7692, 7.2.1).
    static let tail: ByteSlice = [0x00, 0x00, 0xFF, 0xFF]

    /// Compresses a message.
    ///
    /// - Returns: The compressed bytes; nil if zlib runs out of memory.
    func compress(_ message: UnsafeRawBufferPointer) -> ByteWriter? {
        var output = ByteWriter(capacity: message.count / 2 + 64)
        guard !message.isEmpty else {
            // An empty message is one empty block (RFC 7692, 7.2.3.6).
            output.append(UInt8(0))
            return output
        }
        var left = message
        var isFlushed = false
        while !isFlushed {
            var consumed = 0
            var hasFailed = false
            // More than six bytes, because zlib would otherwise repeat the end of its flush.
            let space = max(left.count / 2, 64)
            output.append(upTo: space) { target in
                var produced = 0
                // In bounds: zlib gets the sizes of both buffers.
                let result = waybill_deflate(
                    stream,
                    left.bindMemory(to: UInt8.self).baseAddress,
                    left.count,
                    target.bindMemory(to: UInt8.self).baseAddress,
                    target.count,
                    &consumed,
                    &produced
                )
                hasFailed = result != WAYBILL_ZLIB_OK
                isFlushed = produced < target.count && consumed == left.count
                return produced
            }
            guard !hasFailed else {
                // Reset, because the peer will not see the data that the context now holds.
                _ = waybill_deflater_reset(stream)
                return nil
            }
            left = UnsafeRawBufferPointer(rebasing: left.dropFirst(consumed))
        }
        if !keepsContext { _ = waybill_deflater_reset(stream) }
        output.truncate(to: output.count - Self.tail.count)
        return output
    }
}
