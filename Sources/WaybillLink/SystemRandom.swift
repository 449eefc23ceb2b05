#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The system's random numbers, fetched many at once: on Linux, each call of the kernel takes as long as masking a
/// message.
enum SystemRandom {
    static func words(_ count: Int) -> [UInt64] {
        #if os(Linux)
            var words = [UInt64](repeating: 0, count: max(count, 0))
            let isFilled = words.withUnsafeMutableBytes { bytes in
                // At most 256 bytes per call (getentropy(3)).
                stride(from: 0, to: bytes.count, by: 256).allSatisfy { start in
                    let part = UnsafeMutableRawBufferPointer(
                        rebasing: bytes[start..<min(start + 256, bytes.count)]
                    )
                    return getentropy(part.baseAddress, part.count) == 0
                }
            }
            if isFilled { return words }
        #endif
        return (0..<count).map { _ in UInt64.random(in: .min ... .max) }
    }
}
