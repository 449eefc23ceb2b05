/// Divides blocks of input into lines.
package struct LineSplitter: Sendable {
    private var rest: [UInt8] = []
    private let limit: Int

    /// Makes a splitter for lines up to a length in bytes.
    package init(limit: Int) {
        self.limit = limit
    }

    /// Adds a block.
    ///
    /// - Returns: The lines that the block ends, without their line feeds.
    /// - Throws: `TextError` for a line above the limit.
    package mutating func add(_ block: [UInt8]) throws(TextError) -> [[UInt8]] {
        var lines: [[UInt8]] = []
        var begin = 0
        while let end = block[begin...].firstIndex(of: 0x0A) {
            try check(rest.count + end - begin)
            if rest.isEmpty {
                lines.append(Array(block[begin..<end]))
            } else {
                rest += block[begin..<end]
                lines.append(rest)
                rest = []
            }
            begin = end + 1
        }
        try check(rest.count + block.count - begin)
        rest += block[begin...]
        return lines
    }

    /// The last line, if no line feed has ended it.
    package mutating func finish() -> [UInt8]? {
        defer { rest = [] }
        return rest.isEmpty ? nil : rest
    }

    private func check(_ count: Int) throws(TextError) {
        guard count <= limit else {
            throw TextError("a line is longer than \(shown(limit)) bytes: divide it")
        }
    }
}
