package import WireCore

/// The exclusive-or mask that hides a client's bytes from intermediaries (RFC 6455, 5.3).
package enum WebSocketMasking {
    /// Rotates a key so that the byte for a payload offset comes first.
    ///
    /// The first byte of the key in the frame's header is the lowest.
    static func turned(_ key: UInt32, toOffset offset: Int) -> UInt32 {
        let shift = UInt32(truncatingIfNeeded: offset & 3) * 8
        return shift == 0 ? key : key >> shift | key << (32 - shift)
    }

    /// Copies bytes and masks or unmasks them on the way.
    ///
    /// - Parameters:
    ///   - source: The bytes.
    ///   - target: The destination: as many bytes, not overlapping.
    ///   - key: The key, its first byte lowest.
    ///   - offset: The number of payload bytes before these.
    /// - Complexity: O(n), in words that the compiler vectorises.
    package static func apply(
        _ source: UnsafeRawBufferPointer,
        to target: UnsafeMutableRawPointer,
        key: UInt32,
        offset: Int = 0
    ) {
        guard let base = source.baseAddress else { return }
        let turned = turned(key, toOffset: offset)
        let wide = UInt64(turned) | UInt64(turned) << 32
        let words = source.count / 8
        // In bounds on both sides: eight bytes at each of `words` places, and both buffers hold `source.count` bytes.
        for index in 0..<words {
            let word = base.loadUnaligned(fromByteOffset: index &* 8, as: UInt64.self)
            target.storeBytes(
                of: word ^ wide.littleEndian,
                toByteOffset: index &* 8,
                as: UInt64.self
            )
        }
        for index in (words &* 8)..<source.count {
            let byte = base.load(fromByteOffset: index, as: UInt8.self)
            let mask = UInt8(truncatingIfNeeded: turned >> (UInt32(index & 3) * 8))
            target.storeBytes(of: byte ^ mask, toByteOffset: index, as: UInt8.self)
        }
    }
}

extension ByteWriter {
    package mutating func append(
        _ bytes: UnsafeRawBufferPointer,
        maskedBy key: UInt32,
        offset: Int = 0
    ) {
        append(upTo: bytes.count) { space in
            guard let target = space.baseAddress else { return 0 }
            WebSocketMasking.apply(bytes, to: target, key: key, offset: offset)
            return bytes.count
        }
    }
}
