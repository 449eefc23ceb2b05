#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// What is at a path before a recorder writes there.
///
/// It is found without `stat`, since a privacy manifest for apps would have to name its reason, and a resource in a target
/// with Swift brings Foundation in.
enum PresentFile: Equatable {
    case none
    /// A file without contents.
    case empty
    /// The beginning of a header, which the end of a process has cut.
    case torn
    /// A recording with its header.
    case recording(RecordingHeader)
    /// A file of something else.
    case other
    /// A folder, a link, a pipe or a device.
    case notAFile

    /// The longest header that is read, in bytes.
    private static let headerLimit = 1_024

    /// Looks at a path.
    ///
    /// - Throws: `cannotOpen`.
    init(at path: String) throws(RecordingError) {
        // Non-blocking: opening a pipe would wait for its other end.
        let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            switch errno {
            case ENOENT: self = .none
            case ELOOP: self = .notAFile
            default: throw RecordingError(.cannotOpen, SystemError.text(errno), path: path)
            }
            return
        }
        defer { close(descriptor) }
        // A pipe or a terminal has no length. Reading would take what is meant for another reader.
        guard lseek(descriptor, 0, SEEK_END) >= 0, lseek(descriptor, 0, SEEK_SET) == 0 else {
            self = .notAFile
            return
        }
        var bytes = [UInt8](repeating: 0, count: Self.headerLimit)
        let count = read(descriptor, &bytes, bytes.count)
        // Folders are not read so.
        guard count >= 0 else {
            self = .notAFile
            return
        }
        guard count > 0 else {
            self = Self.isEmptyFile(path) ? .empty : .notAFile
            return
        }
        let line = bytes[..<count].prefix { $0 != UInt8(ascii: "\n") }
        if line.count < count, case .header(let header)? = try? RecordingLine(Array(line)) {
            self = .recording(header)
        } else if line.count == count, count < Self.headerLimit,
            line.starts(with: RecordingHeader.beginning)
        {
            self = .torn
        } else {
            self = .other
        }
    }

    /// Whether a recorder has made the file, so that another one may replace it.
    var isOfRecorder: Bool {
        switch self {
        case .empty, .torn, .recording: true
        case .none, .other, .notAFile: false
        }
    }

    /// Whether something without contents is a file: a device has no length that could be set.
    private static func isEmptyFile(_ path: String) -> Bool {
        let descriptor = open(path, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        return lseek(descriptor, 0, SEEK_END) == 0 && ftruncate(descriptor, 0) == 0
    }

    /// Whether there is something at a path.
    static func exists(_ path: String) -> Bool { access(path, F_OK) == 0 }
}
