import WireCore

/// Lines that several threads append to.
final class LockedLines: Sendable {
    private let lines = Locked([String]())

    var all: [String] { lines.withLock { $0 } }

    func append(_ line: String) {
        lines.withLock { $0.append(line) }
    }
}
