import CommandText
import Testing

@Suite("The histogram of times")
struct HistogramTests {
    @Test("Percentiles are at most 1/128 too high and never too low")
    func percentiles() {
        var histogram = LatencyHistogram()
        var times: [Int] = []
        var value = 1
        for step in 0..<5_000 {
            value = (value &* 6_364_136_223 &+ 1_442_695) & 0xFFF_FFFF_FFFF
            let time = value >> (step % 40)
            times.append(time)
            histogram.record(time)
        }
        times.sort()
        for share in [0.001, 0.1, 0.5, 0.9, 0.99, 0.999, 1] {
            let exact = times[max(Int((share * 5_000).rounded(.up)) - 1, 0)]
            let found = histogram.percentile(share)
            #expect(found >= exact)
            #expect(found <= exact + exact / 128)
        }
        #expect(histogram.minimum == times[0])
        #expect(histogram.maximum == times[4_999])
        #expect(histogram.groups.map(\.count).reduce(0, +) == 5_000)
        for (group, next) in zip(histogram.groups, histogram.groups.dropFirst()) {
            #expect(group.limit < next.limit)
        }
    }

    @Test("Small, negative and very long times")
    func extremes() {
        var histogram = LatencyHistogram()
        #expect(histogram.percentile(0.5) == 0)
        for time in [-5, 0, 1, 255, 256, .max] { histogram.record(time) }
        #expect(histogram.percentile(0) == 0)
        #expect(histogram.percentile(0.5) == 1)
        #expect(histogram.percentile(0.67) >= 255)
        #expect(histogram.percentile(1) == .max)
    }

    @Test("Adding one to another is counting in one")
    func adding() {
        var (one, other, all) = (LatencyHistogram(), LatencyHistogram(), LatencyHistogram())
        for time in 1...1_000 {
            if time.isMultiple(of: 3) { one.record(time) } else { other.record(time) }
            all.record(time)
        }
        one.add(other)
        #expect(one.count == all.count)
        #expect(one.mean == all.mean)
        #expect(one.percentile(0.9) == all.percentile(0.9))
        #expect(one.minimum == 1)
    }
}
