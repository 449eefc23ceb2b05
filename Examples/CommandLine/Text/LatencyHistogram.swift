/// Counts of times by their size, with an error below 1 % and bounded memory.
///
/// Each power of two is divided into 128 equal parts (log-linear), so a percentile is at most 1/128 too high.
package struct LatencyHistogram: Sendable {
    private static let partBits = 7
    private static let parts = 1 << partBits

    private var counts: [Int]
    package private(set) var count = 0
    /// The shortest time; 0 without any.
    package private(set) var minimum = 0
    /// The longest time; 0 without any.
    package private(set) var maximum = 0
    private var sum = 0.0

    package init() {
        counts = Array(repeating: 0, count: (Int.bitWidth - Self.partBits) * Self.parts)
    }

    /// Counts a time, in nanoseconds or any other unit; negative ones count as zero.
    package mutating func record(_ time: Int) {
        let time = max(time, 0)
        counts[Self.index(of: time)] += 1
        minimum = count == 0 ? time : min(minimum, time)
        maximum = max(maximum, time)
        sum += Double(time)
        count += 1
    }

    /// Adds the counts of another one.
    package mutating func add(_ other: LatencyHistogram) {
        guard other.count > 0 else { return }
        for (index, count) in other.counts.enumerated() where count > 0 { counts[index] += count }
        minimum = count == 0 ? other.minimum : min(minimum, other.minimum)
        maximum = max(maximum, other.maximum)
        sum += other.sum
        count += other.count
    }

    /// The mean; 0 without times.
    package var mean: Double { count == 0 ? 0 : sum / Double(count) }

    /// The time that a share of all times, from 0 to 1, does not exceed; 0 without times.
    package func percentile(_ share: Double) -> Int {
        guard count > 0 else { return 0 }
        let rank = min(max(Int((share * Double(count)).rounded(.up)), 1), count)
        var seen = 0
        for (index, count) in counts.enumerated() where count > 0 {
            seen += count
            if seen >= rank { return min(Self.highest(at: index), maximum) }
        }
        return maximum
    }

    /// The counts by powers of two: each group has the times below its limit and not in the group before.
    package var groups: [(limit: Int, count: Int)] {
        var groups: [(limit: Int, count: Int)] = []
        for (index, count) in counts.enumerated() where count > 0 {
            let highest = Self.highest(at: index)
            let width = Int.bitWidth - highest.leadingZeroBitCount
            let limit = width < Int.bitWidth - 1 ? 1 << width : .max
            if groups.last?.limit == limit {
                groups[groups.count - 1].count += count
            } else {
                groups.append((limit, count))
            }
        }
        return groups
    }

    private static func index(of time: Int) -> Int {
        let width = Int.bitWidth - time.leadingZeroBitCount
        guard width > partBits + 1 else { return time }
        let shift = width - partBits - 1
        return (shift << partBits) + (time >> shift)
    }

    private static func highest(at index: Int) -> Int {
        guard index >= 2 * parts else { return index }
        let shift = (index >> partBits) - 1
        let base = index - (shift << partBits)
        return (base << shift) | ((1 << shift) - 1)
    }
}
