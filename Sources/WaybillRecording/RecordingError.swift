/// The reason why a recording could not be written or read.
public struct RecordingError: Error, Hashable, Sendable {
    /// The kind of failure.
    ///
    /// More may come: a `switch` needs a `default`.
    public struct Reason: Hashable, Sendable {
        /// The name of the kind.
        public let name: String

        /// The file cannot be opened or made: its folder is missing, or its permissions refuse it.
        public static let cannotOpen = Reason(name: "cannotOpen")
        /// The path is that of a folder, a pipe or a device.
        public static let notAFile = Reason(name: "notAFile")
        /// Another recorder, or another program, has put its file in the place of this recorder's.
        public static let replaced = Reason(name: "replaced")
        /// There is no room on the disk, or the quota or the limit for files is reached.
        public static let diskFull = Reason(name: "diskFull")
        /// The file could not be written or read.
        public static let diskFailed = Reason(name: "diskFailed")
        /// The file does not begin with the header of a recording; a recorder does not replace it.
        public static let notARecording = Reason(name: "notARecording")
        /// A newer version of the package has written the file, in a format that this version cannot read.
        public static let newerVersion = Reason(name: "newerVersion")
        /// A line is longer than 16 MiB.
        public static let lineTooLong = Reason(name: "lineTooLong")
        /// A line is no JSON object of a recording.
        public static let invalidLine = Reason(name: "invalidLine")
    }

    /// The kind of failure.
    public var reason: Reason
    /// The path of the file, or the name that the caller gave to the text.
    public var path: String
    /// The number of the line, from 1; nil where the whole file is at fault.
    public var line: Int?
    /// What is at fault, or the text of the system; no part of the line is repeated.
    public var detail: String

    init(_ reason: Reason, _ detail: String, path: String, line: Int? = nil) {
        self.reason = reason
        self.path = path
        self.line = line
        self.detail = detail
    }
}

extension RecordingError {
    /// A line that cannot be read.
    init(_ fault: JSONFault, path: String, line: Int) {
        let detail =
            switch fault {
            case .encoding: "the line is no UTF-8"
            case .syntax(let index): "the line is no JSON object, at byte \(index + 1)"
            case .depth: "more than \(JSONScanner.maximumDepth) arrays and objects in each other"
            case .value(let key): "\"\(key)\" is missing, or has another type or range"
            }
        self.init(.invalidLine, detail, path: path, line: line)
    }
}

extension RecordingError: CustomStringConvertible {
    /// The file, the line and the detail, as compilers write it.
    public var description: String {
        "\(path)\(line.map { ":\($0)" } ?? ""): \(detail) (\(reason.name))"
    }
}
