public import Waybill

/// The records of a ``Recorder``, read back: to be shown, filtered and compared.
///
/// ```swift
/// let recording = try Recording(path: "/tmp/wire.jsonl")
/// var filter = Recording.Filter()
/// filter.topic = "chat/#"
/// for record in recording.filtered(filter).records { print(record) }
/// ```
///
/// A recording is in memory as a whole. ``RecordingReader`` reads a long file record by record.
public struct Recording: Sendable {
    /// The records, in the order of the file.
    public var records: [Record]
    /// The errors of the lines that could not be read, and no more than the first 1,000 of them.
    ///
    /// A file that was set aside and could not be read counts as one line; its error has the path of that file.
    public var unreadableLines: [RecordingError] = []
    /// The number of lines that could not be read.
    public var unreadableLineCount = 0
    /// Whether a last line was cut, as a crash leaves it behind; it is not one of the unreadable lines.
    public var isTorn = false

    static let errorLimit = 1_000

    /// Makes a recording of records, such as those of a ``RecordingBuffer``.
    public init(_ records: [Record] = []) {
        self.records = records
    }

    /// Reads a file.
    ///
    /// - Parameters:
    ///   - path: The path of the file.
    ///   - includesRotated: Whether the files that the recorder has set aside, `path.1` and so on, are read before it;
    ///     false by default. One of them that cannot be read is an error in ``unreadableLines``.
    /// - Throws: ``RecordingError``: `cannotOpen`, `notAFile`, `diskFailed`, `notARecording`, `newerVersion`. Lines that
    ///   cannot be read do not end the reading: see ``unreadableLines``.
    public init(path: String, includesRotated: Bool = false) throws(RecordingError) {
        self.init()
        if includesRotated {
            for earlier in Self.rotatedPaths(of: path) {
                do throws(RecordingError) {
                    try append(RecordingReader(path: earlier))
                } catch {
                    note(error)
                }
            }
        }
        try append(RecordingReader(path: path))
    }

    /// Reads the contents of a file.
    ///
    /// - Parameters:
    ///   - contents: The contents of the file.
    ///   - name: What errors call the file.
    /// - Throws: ``RecordingError``: `notARecording`, `newerVersion`.
    public init(_ contents: Payload, name: String = "recording") throws(RecordingError) {
        self.init()
        try append(RecordingReader(contents, name: name))
    }

    /// The number of records that are missing, as the recording itself tells.
    public var droppedCount: Int {
        records.reduce(0) { sum, record in
            let (total, isTooLarge) = sum.addingReportingOverflow(record.count ?? 0)
            return isTooLarge ? .max : total
        }
    }

    /// The recording without bodies, to be passed on.
    public var redacted: Recording {
        var recording = self
        recording.records = records.map(\.redacted)
        return recording
    }

    /// The recording as the contents of a file.
    public var contents: Payload {
        var writer = JSONWriter()
        RecordingHeader(time: records.first?.time ?? RecordingTime.now()).write(to: &writer)
        for record in records { record.write(to: &writer) }
        return Payload(writer.bytes)
    }

    private mutating func append(_ reader: RecordingReader) throws(RecordingError) {
        var reader = reader
        while true {
            do throws(RecordingError) {
                guard let record = try reader.next() else { break }
                records.append(record)
            } catch {
                guard error.line != nil, error.reason != .newerVersion else { throw error }
                note(error)
            }
        }
        isTorn = isTorn || reader.isTorn
    }

    private mutating func note(_ error: RecordingError) {
        unreadableLineCount += 1
        if unreadableLines.count < Self.errorLimit { unreadableLines.append(error) }
    }

    /// The files that a recorder has set aside, the oldest first.
    private static func rotatedPaths(of path: String) -> [String] {
        var paths: [String] = []
        while paths.count < Recorder.Options.maximumFileCountLimit {
            let next = "\(path).\(paths.count + 1)"
            guard PresentFile.exists(next) else { break }
            paths.append(next)
        }
        return paths.reversed()
    }
}
