#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Reads small files.
enum SystemFile {
    /// The largest file that is read: 1 MiB, about five hundred certificates.
    static let limit = 1 << 20

    /// The contents of a file; nil if it cannot be read or is larger than the limit.
    static func contents(of path: String) -> [UInt8]? {
        // Non-blocking: a pipe without a writer would block the reader.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var contents: [UInt8] = []
        var part = [UInt8](repeating: 0, count: 16_384)
        while true {
            let count = read(descriptor, &part, part.count)
            guard count >= 0, contents.count + count <= limit else { return nil }
            if count == 0 { return contents }
            contents += part.prefix(count)
        }
    }
}
