import Waybill
import WireCore

extension Recording {
    /// How two recordings differ, without regard to times, numbers, labels, texts and bodies.
    ///
    /// Records are alike if their kind, direction, name, topic and length are.
    public struct Comparison: Sendable {
        /// A place at which the recordings differ.
        public struct Difference: Sendable {
            /// The index of the records.
            public var index: Int
            /// The record of the first recording; nil if it has ended.
            public var first: Record?
            /// The record of the second recording; nil if it has ended.
            public var second: Record?
        }

        /// The first place at which the recordings differ; nil if they are alike.
        public var firstDifference: Difference?
        /// The number of records of the first recording that the second has, too, in any order.
        public var commonCount = 0
        /// The number of records that only the first recording has.
        public var onlyInFirstCount = 0
        /// The number of records that only the second recording has.
        public var onlyInSecondCount = 0

        /// Whether both recordings have the same records in the same order.
        public var isAlike: Bool { firstDifference == nil }
    }

    /// Compares this recording, the first, with another.
    ///
    /// Filter both before, if states or one direction do not matter.
    ///
    /// - Parameter other: The second recording.
    /// - Returns: The first difference and the counts.
    /// - Complexity: O(n) with the records of both.
    public func compared(with other: Recording) -> Comparison {
        var comparison = Comparison()
        let (mine, others) = (records.map(RecordKey.init), other.records.map(RecordKey.init))
        let shared = zip(mine, others).prefix { $0 == $1 }.count
        if shared < max(mine.count, others.count) {
            comparison.firstDifference = Comparison.Difference(
                index: shared,
                first: records.dropFirst(shared).first,
                second: other.records.dropFirst(shared).first
            )
        }
        var counts: [RecordKey: Int] = [:]
        for key in mine { counts[key, default: 0] += 1 }
        for key in others {
            if let count = counts[key], count > 0 {
                counts[key] = count - 1
                comparison.commonCount += 1
            } else {
                comparison.onlyInSecondCount += 1
            }
        }
        comparison.onlyInFirstCount = mine.count - comparison.commonCount
        return comparison
    }
}

extension Recording.Comparison: CustomStringConvertible {
    /// The first difference and the counts, in a few lines.
    public var description: String {
        var lines: [String] = []
        if let difference = firstDifference {
            func shown(_ record: Recording.Record?) -> String {
                record.map { "\($0)" } ?? "the end of the recording"
            }
            lines.append("the first difference is at record \(difference.index + 1)")
            lines.append("  first:  \(shown(difference.first))")
            lines.append("  second: \(shown(difference.second))")
        }
        let counts =
            "\(onlyInFirstCount) only in the first, \(onlyInSecondCount) only in the second"
        lines.append("\(commonCount) records in both, \(counts)")
        return lines.joined(separator: "\n")
    }
}

/// What makes two records alike.
private struct RecordKey: Hashable {
    private let kind: Recording.Kind
    private let direction: WireRecord.Direction?
    private let name: WireName
    private let topic: WireName?
    private let byteCount: Int

    init(_ record: Recording.Record) {
        (kind, direction, byteCount) = (record.kind, record.direction, record.byteCount)
        (name, topic) = (WireName(record.name), record.topic.map { WireName($0) })
    }
}
