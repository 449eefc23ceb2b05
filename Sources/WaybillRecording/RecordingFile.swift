import Waybill
import WireCore

#if canImport(Darwin)
    import Darwin
#elseif canImport(Musl)
    import Musl
#else
    import Glibc
#endif

/// The file of a recorder: writes lines, and sets the file aside when it is full.
///
/// `@unchecked Sendable`, because: the recorder uses it on its serial queue alone, and before the queue has any work.
final class RecordingFile: @unchecked Sendable {
    /// Writes bytes to a descriptor, as `write` of the system does; tests let it fail.
    typealias Write = (Int32, UnsafeRawPointer, Int) -> Int

    /// What has become of records.
    struct Outcome {
        var writtenCount = 0
        var lostCount = 0
        var error: RecordingError?
    }

    /// What the writer has.
    private struct Waiting {
        var lineCount = 0
        /// The records, without notes about missing ones.
        var recordCount = 0
        /// The records that the notes say are missing.
        var missingCount = 0

        init() {}

        init(_ record: Recording.Record) {
            lineCount = 1
            recordCount = record.kind == .dropped ? 0 : 1
            missingCount = record.count ?? 0
        }

        mutating func add(_ other: Waiting) {
            lineCount += other.lineCount
            recordCount += other.recordCount
            missingCount += other.missingCount
        }
    }

    /// The bytes that are collected before they are written.
    private static let partSize = 1 << 16

    let path: String
    private let maximumSize: Int
    private let maximumCount: Int
    private let now: @Sendable () -> Duration
    private let write: Write
    private var descriptor: Int32 = -1
    /// The length of the file in whole lines.
    private var size = 0
    /// The header of the file, which tells it from every other.
    private var header: RecordingHeader?
    /// The length of the header.
    private var headerSize = 0
    private var writer = JSONWriter()
    private var waiting = Waiting()
    /// The records that were lost since the last `dropped` line.
    private var owedCount = 0

    /// Makes the file; a recording that is there is set aside.
    ///
    /// - Throws: `cannotOpen`, `notAFile`, `notARecording`, `diskFull`, `diskFailed`.
    init(
        path: String,
        maximumSize: Int,
        maximumCount: Int,
        now: @escaping @Sendable () -> Duration,
        write: @escaping Write
    ) throws(RecordingError) {
        (self.path, self.now, self.write) = (path, now, write)
        (self.maximumSize, self.maximumCount) = (maximumSize, maximumCount)
        switch try PresentFile(at: path) {
        case .none: break
        case .empty, .torn: unlink(path)
        case .recording: try setAside()
        case .other:
            throw RecordingError(.notARecording, "another file is there, and stays", path: path)
        case .notAFile:
            throw RecordingError(.notAFile, "a folder, link or device is there", path: path)
        }
        try begin()
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    // MARK: Writing

    /// Writes records, and sets the file aside when it is full.
    func append(_ records: [Recording.Record]) -> Outcome {
        var outcome = Outcome()
        for record in records {
            let start = writer.bytes.count
            add(record)
            // A file has at least one record, however long it is.
            let isAlone = waiting.lineCount == 0 && size <= headerSize
            if size + writer.bytes.count > maximumSize, !isAlone {
                writer.truncate(to: start)
                flush(&outcome)
                do throws(RecordingError) {
                    try rotate()
                } catch {
                    outcome.error = error
                    lose(Waiting(record), &outcome)
                    continue
                }
                add(record)
            }
            waiting.add(Waiting(record))
            if writer.bytes.count >= Self.partSize { flush(&outcome) }
        }
        flush(&outcome)
        return outcome
    }

    private func add(_ record: Recording.Record) {
        if owedCount > 0, waiting.lineCount == 0 { noteLoss(before: record) }
        record.write(to: &writer)
    }

    /// Writes what waits; it is lost if it cannot be written.
    private func flush(_ outcome: inout Outcome) {
        defer {
            waiting = Waiting()
            writer.removeAll()
        }
        guard waiting.lineCount > 0 else { return }
        do throws(RecordingError) {
            if descriptor < 0 { try begin(keeping: true) }
            try writeAll()
            outcome.writtenCount += waiting.recordCount
            (outcome.error, owedCount) = (nil, 0)
        } catch {
            outcome.error = error
            lose(waiting, &outcome)
        }
    }

    private func lose(_ lost: Waiting, _ outcome: inout Outcome) {
        outcome.lostCount += lost.recordCount
        owedCount += lost.recordCount + lost.missingCount
    }

    /// Writes a line that says that records are missing before a record.
    private func noteLoss(before record: Recording.Record) {
        var note = Recording.Record(droppedBefore: record)
        note.count = owedCount
        note.write(to: &writer)
    }

    private func writeAll() throws(RecordingError) {
        let guarding = BlockedSignal(SIGXFSZ)
        defer { guarding.end() }
        let bytes = writer.bytes
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes { bytes in
                bytes.baseAddress.map { write(descriptor, $0 + written, bytes.count - written) }
                    ?? 0
            }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                let error = failure(count == 0 ? ENOSPC : errno)
                // Back to the end of the last whole line.
                if written > 0 { ftruncate(descriptor, off_t(size)) }
                throw error
            }
            written += count
        }
        size += bytes.count
    }

    private func failure(_ number: Int32) -> RecordingError {
        let isFull = number == ENOSPC || number == EDQUOT || number == EFBIG
        return RecordingError(
            isFull ? .diskFull : .diskFailed,
            SystemError.text(number),
            path: path
        )
    }

    // MARK: Files

    /// Sets the file aside and begins another.
    ///
    /// - Throws: `replaced`, `notARecording`, `cannotOpen`, `diskFull`, `diskFailed`. The next record tries it again, and is lost if that
    ///   fails, since the file would grow beyond its size.
    private func rotate() throws(RecordingError) {
        switch try PresentFile(at: path) {
        case .none: break
        case .recording(let present) where present == header: try setAside()
        default:
            throw RecordingError(.replaced, "another file has taken its place", path: path)
        }
        if descriptor >= 0 { close(descriptor) }
        (descriptor, size, headerSize) = (-1, 0, 0)
        try begin()
    }

    /// Renames the file to `path.1`, after the files that have such names, up to the first name that is free.
    ///
    /// So a call that fails can be repeated: what it has renamed leaves a free name, and no further file is moved.
    ///
    /// - Throws: `notARecording` with the path of another program's file that has such a name; `cannotOpen`.
    private func setAside() throws(RecordingError) {
        guard maximumCount > 1 else {
            guard unlink(path) == 0 || errno == ENOENT else { throw cannotOpen() }
            return
        }
        var last = 1
        while last < maximumCount {
            let earlier = "\(path).\(last)"
            let present = try PresentFile(at: earlier)
            guard present != .none else { break }
            guard present.isOfRecorder else {
                throw RecordingError(
                    .notARecording,
                    "another file is there, and stays",
                    path: earlier
                )
            }
            last += 1
        }
        for number in stride(from: min(last, maximumCount - 1), through: 1, by: -1) {
            let source = number == 1 ? path : "\(path).\(number - 1)"
            guard rename(source, "\(path).\(number)") == 0 || errno == ENOENT else {
                throw cannotOpen()
            }
        }
    }

    private func cannotOpen() -> RecordingError {
        RecordingError(.cannotOpen, SystemError.text(errno), path: path)
    }

    /// Makes a file that only its owner may read, and writes its header.
    ///
    /// - Parameter isKeeping: Whether lines wait in the writer, before which the header is written.
    /// - Throws: `cannotOpen`, `diskFull`, `diskFailed`; no file is left then.
    private func begin(keeping isKeeping: Bool = false) throws(RecordingError) {
        let opened = open(
            path,
            O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
            0o600
        )
        guard opened >= 0 else { throw cannotOpen() }
        let kept = writer
        writer = JSONWriter()
        (descriptor, size) = (opened, 0)
        let new = RecordingHeader(time: now())
        header = new
        new.write(to: &writer)
        headerSize = writer.bytes.count
        defer { writer = isKeeping ? kept : JSONWriter() }
        do throws(RecordingError) {
            try writeAll()
        } catch {
            close(descriptor)
            (descriptor, size, headerSize) = (-1, 0, 0)
            unlink(path)
            throw error
        }
    }
}

extension Recording.Record {
    /// A note that records are missing before a record.
    init(droppedBefore record: Recording.Record) {
        self.init(
            number: max(record.number, 1) - 1,
            time: record.time,
            kind: .dropped,
            name: "dropped",
            text: "records are missing"
        )
    }
}
