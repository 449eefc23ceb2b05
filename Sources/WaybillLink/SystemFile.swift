#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// Small files.
enum SystemFile {
    /// The largest file that is read: 1 MiB, some five hundred certificates.
    static let limit = 1 << 20

    /// All that is in a file; nil when it cannot be read or is larger than the limit.
    static func contents(of path: String) -> [UInt8]? {
        // A pipe that nobody writes to would keep its reader waiting.
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
