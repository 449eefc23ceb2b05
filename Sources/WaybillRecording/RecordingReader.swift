public import Waybill
import WireCore

/// Reads the records of one file, one after another, so that a file of any length can be read.
///
/// ```swift
/// var reader = try RecordingReader(path: path)
/// while let record = try reader.next() { print(record) }
/// ```
///
/// A line that cannot be read is an error of ``next()``, and the next call goes on behind it. Lines of unknown kinds are
/// skipped. A last line without its end, which a crash leaves behind, is skipped if it cannot be read: see ``isTorn``.
public struct RecordingReader {
    private let input: RecordingInput
    private let path: String
    private var lineNumber = 1
    /// Whether the last line was cut and could not be read; false before the end is reached.
    public private(set) var isTorn = false

    /// Opens a file and reads its first line.
    ///
    /// - Parameter path: The path of the file.
    /// - Throws: ``RecordingError``: `cannotOpen`, `notAFile`, `diskFailed`, `notARecording`, `newerVersion`.
    public init(path: String) throws(RecordingError) {
        try self.init(RecordingInput(path: path), path: path)
    }

    /// Reads a recording that is in memory.
    ///
    /// - Parameters:
    ///   - contents: The contents of a file.
    ///   - name: What errors call the file.
    /// - Throws: ``RecordingError``: `notARecording`, `newerVersion`.
    public init(_ contents: Payload, name: String = "recording") throws(RecordingError) {
        try self.init(RecordingInput(contents.bytes, path: name), path: name)
    }

    init(_ input: RecordingInput, path: String) throws(RecordingError) {
        (self.input, self.path) = (input, path)
        guard case .whole(let line) = try input.next(), let first = try? RecordingLine(line),
            case .header(let header) = first
        else {
            throw RecordingError(
                .notARecording,
                "the first line is no header of a recording",
                path: path,
                line: 1
            )
        }
        try check(header)
    }

    private func check(_ header: RecordingHeader) throws(RecordingError) {
        guard header.version > RecordingHeader.version else { return }
        throw RecordingError(
            .newerVersion,
            "the format has version \(header.version), and this package reads version \(RecordingHeader.version)",
            path: path,
            line: lineNumber
        )
    }

    /// Returns the next record; nil at the end of the file.
    ///
    /// - Returns: The record.
    /// - Throws: ``RecordingError`` with the number of the line: `invalidLine`, `lineTooLong`; `newerVersion` where files
    ///   were joined; `diskFailed`.
    public mutating func next() throws(RecordingError) -> Recording.Record? {
        while let line = try input.next() {
            lineNumber += 1
            let bytes: [UInt8]
            switch line {
            case .whole(let whole): bytes = whole
            case .torn(let rest): bytes = rest
            case .tooLong:
                throw RecordingError(
                    .lineTooLong,
                    "the line is longer than \(RecordingInput.maximumLineSize) bytes",
                    path: path,
                    line: lineNumber
                )
            }
            let content: RecordingLine
            do throws(JSONFault) {
                content = try RecordingLine(bytes)
            } catch {
                if case .torn = line {
                    isTorn = true
                    return nil
                }
                throw RecordingError(error, path: path, line: lineNumber)
            }
            switch content {
            case .record(let record): return record
            case .header(let header): try check(header)
            case .unknown: continue
            }
        }
        return nil
    }
}
