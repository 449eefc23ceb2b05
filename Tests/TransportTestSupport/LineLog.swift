import WireCore

/// Lines that several threads append to.
package final class LineLog: Sendable {
    private let lines = Locked([String]())

    package var all: [String] { lines.withLock { $0 } }

    package init() {}

    package func append(_ line: String) { lines.withLock { $0.append(line) } }

    /// The number of lines that contain a text.
    package func count(_ text: String) -> Int { all.count { $0.contains(text) } }

    /// The first line with this text, from the frame on.
    package func first(_ text: String) -> String? {
        all.first { $0.contains(text) }.map { line in
            line.split(separator: " ", maxSplits: 3).last.map(String.init) ?? line
        }
    }
}
