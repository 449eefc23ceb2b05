import WireCore

/// What happened in a world, as far as it is written down; the end of it is kept.
///
/// `@unchecked Sendable`, because: only the thread that simulates touches it, and the holder of the run's result afterwards.
final class SimulationTrace: @unchecked Sendable {
    /// How many lines are kept: 2,000.
    private static let capacity = 2_000

    let isRecording: Bool
    private var kept: [String] = []
    private(set) var count = 0

    init(isRecording: Bool) {
        self.isRecording = isRecording
    }

    /// Writes a line.
    func note(_ text: @autoclosure () -> String, at time: WireInstant) {
        count += 1
        guard isRecording else { return }
        if kept.count >= 2 * Self.capacity { kept.removeFirst(Self.capacity) }
        kept.append("\(Self.seconds(time)) \(text())")
    }

    /// The last lines, the earliest first.
    var lines: [String] { Array(kept.suffix(Self.capacity)) }

    /// Seconds with six digits behind the point.
    static func seconds(_ time: WireInstant) -> String {
        let microseconds = time.nanoseconds / 1_000
        let digits = String(1_000_000 + microseconds % 1_000_000).dropFirst()
        return "\(microseconds / 1_000_000).\(digits)"
    }
}
