#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The lines of a file, read in parts.
final class RecordingInput {
    /// The longest line that is read, in bytes.
    static let maximumLineSize = 16 << 20

    /// A line, or what is left of it.
    enum Line: Equatable {
        case whole([UInt8])
        /// The last line, without its end.
        case torn([UInt8])
        /// A line that was longer than the limit, and was skipped.
        case tooLong
    }

    private static let partSize = 1 << 16

    private let descriptor: Int32
    private let path: String
    private let limit: Int
    private var waiting: [UInt8] = []
    private var start = 0
    /// The bytes from `start` on that are known to have no end of a line.
    private var searched = 0
    private var isAtEnd = false
    private var isSkipping = false
    private var part: [UInt8] = []

    /// Opens a file.
    ///
    /// - Throws: `cannotOpen`, `notAFile`.
    init(path: String, limit: Int = RecordingInput.maximumLineSize) throws(RecordingError) {
        // Non-blocking: opening a pipe without a writer would wait for one.
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            throw RecordingError(.cannotOpen, SystemError.text(errno), path: path)
        }
        (self.path, self.limit) = (path, limit)
        part = [UInt8](repeating: 0, count: Self.partSize)
        // Pipes and terminals have no length. That of a device is zero, although it may give bytes without end.
        let size = lseek(descriptor, 0, SEEK_END)
        guard size >= 0, lseek(descriptor, 0, SEEK_SET) == 0 else {
            throw RecordingError(.notAFile, "this is no file", path: path)
        }
        isAtEnd = size == 0
    }

    /// Takes bytes instead of a file.
    init(_ bytes: [UInt8], path: String, limit: Int = RecordingInput.maximumLineSize) {
        (descriptor, waiting, isAtEnd) = (-1, bytes, true)
        (self.path, self.limit) = (path, limit)
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// The next line; nil at the end.
    ///
    /// - Throws: `diskFailed`, `notAFile`; the next call then returns nil.
    func next() throws(RecordingError) -> Line? {
        while true {
            if let end = waiting[(start + searched)...].firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(waiting[start..<end])
                (start, searched) = (end + 1, 0)
                guard !isSkipping, line.count <= limit else {
                    isSkipping = false
                    return .tooLong
                }
                return .whole(line)
            }
            searched = waiting.count - start
            if searched > limit {
                isSkipping = true
                (waiting, start, searched) = ([], 0, 0)
            }
            guard isAtEnd else {
                try readPart()
                continue
            }
            let rest = Array(waiting[start...])
            (waiting, start, searched) = ([], 0, 0)
            guard !isSkipping else {
                isSkipping = false
                return .tooLong
            }
            return rest.isEmpty ? nil : .torn(rest)
        }
    }

    private func readPart() throws(RecordingError) {
        if start > 0 {
            waiting.removeFirst(start)
            start = 0
        }
        var count = 0
        repeat { count = read(descriptor, &part, part.count) } while count < 0 && errno == EINTR
        guard count >= 0 else {
            let error = errno
            isAtEnd = true
            (waiting, start, searched) = ([], 0, 0)
            let isFolder = error == EISDIR
            throw RecordingError(
                isFolder ? .notAFile : .diskFailed,
                SystemError.text(error),
                path: path
            )
        }
        isAtEnd = count == 0
        waiting.append(contentsOf: part[..<count])
    }
}
