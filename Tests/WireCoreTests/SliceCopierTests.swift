import Testing
import WireCore

@Suite("Copies of slices") struct SliceCopierTests {
    private func copy(_ bodies: [[UInt8]]) -> [ByteSlice] {
        var copier = SliceCopier()
        return bodies.map { body in body.withUnsafeBytes { copier.copy($0) } }
    }

    @Test("Each copy has the bytes of its slice", arguments: [0, 1, 20, 256, 4_096, 5_000])
    func bytes(count: Int) {
        let bodies = (0..<40).map { number in [UInt8](repeating: UInt8(number), count: count) }
        #expect(copy(bodies).map(\.bytes) == bodies)
    }

    @Test("Short copies share blocks of at most 4 KiB; a longer one has memory of its own")
    func blocks() {
        let copies = copy(Array(repeating: [UInt8](repeating: 7, count: 256), count: 64))
        // Each block begins at the place 0.
        let starts = copies.filter { $0.offset == 0 }.count
        #expect(starts < 12, "16 KiB in blocks of 256 B, 256 B, 512 B and so on, up to 4 KiB")
        #expect(copies.allSatisfy { $0.offset + $0.count <= SliceCopier.blockByteCount })
        let long = copy([[1], [UInt8](repeating: 7, count: 5_000), [2]])
        #expect(long.map(\.offset) == [0, 0, 0])
        #expect(long[1].count == 5_000)
    }

    @Test("Blocks take at most twice the bytes of the bodies and 4 KiB")
    func waste() {
        // Sizes that leave much of each block unused.
        for sizes in [[1, 4_095], [100, 2_049, 2_049], [2_000, 3_000], [1, 1, 1]] {
            var copied = 0
            var allocated = 0
            var block = 0
            var copier = SliceCopier()
            for round in 0..<100 {
                let body = [UInt8](repeating: 1, count: sizes[round % sizes.count])
                let slice = body.withUnsafeBytes { copier.copy($0) }
                // A new block is as long as the rule says.
                if slice.offset == 0 {
                    block = max(body.count, min(copied, SliceCopier.blockByteCount))
                    allocated += block
                }
                copied += body.count
                #expect(slice.offset + slice.count <= block)
            }
            #expect(allocated <= 2 * copied + SliceCopier.blockByteCount)
        }
    }
}
