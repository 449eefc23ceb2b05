import Testing
import WireCore
import WireTestSupport

@Suite("Heap of deadlines") struct DeadlineHeapTests {
    @Test("The earliest comes first, and of equal ones the smaller number", arguments: 1...20)
    func order(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var heap = DeadlineHeap()
        var expected: [(time: Int64, number: UInt64)] = []
        for number in UInt64(1)...200 {
            let time = Int64.random(in: 0..<50, using: &random)
            heap.add(number, at: WireInstant(nanoseconds: time))
            expected.append((time, number))
        }
        expected.sort { $0 < $1 }
        for entry in expected {
            #expect(heap.first?.time.nanoseconds == entry.time)
            #expect(heap.first?.number == entry.number)
            heap.removeFirst()
        }
        #expect(heap.count == 0)
        heap.removeFirst()
        #expect(heap.first == nil)
    }

    @Test("Closed entries are never the first, and are gone once they are most of the heap")
    func closed() {
        var heap = DeadlineHeap()
        for number in UInt64(1)...1_000 {
            heap.add(number, at: WireInstant(nanoseconds: Int64(number)))
        }
        heap.removeClosed(openCount: 500) { $0 > 500 }
        #expect(heap.first?.number == 501)
        heap.removeClosed(openCount: 10) { $0.isMultiple(of: 50) }
        #expect(heap.count == 10)
        var found: [UInt64] = []
        while let first = heap.first {
            found.append(first.number)
            heap.removeFirst()
        }
        #expect(found == stride(from: 550, through: 1_000, by: 50).map { $0 })
    }
}
