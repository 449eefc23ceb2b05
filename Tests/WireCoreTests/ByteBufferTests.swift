import Testing
import WireCore
import WireTestSupport

@Suite("Byte reader and writer") struct ByteReaderWriterTests {
    @Test(
        "A writer takes memory when something is written, not before, and gives it away with its bytes"
    )
    func memory() {
        var writer = ByteWriter()
        #expect(!writer.hasMemory && writer.isEmpty && writer.bytes == [])
        writer.append(contentsOf: [])
        writer.consume(1)
        writer.truncate(to: 0)
        #expect(!writer.hasMemory)
        writer.append(7 as UInt8)
        var copy = writer
        copy.append(8 as UInt8)
        #expect(writer.hasMemory && writer.bytes == [7] && copy.bytes == [7, 8])
        #expect(writer.takeSlice().bytes == [7])
        #expect(!writer.hasMemory && writer.isEmpty)
        writer.append(lowBytes: 2, of: 0x0201)
        #expect(writer.bytes == [1, 2])
    }

    @Test("What is written is read back, in network order")
    func roundTrip() {
        var writer = ByteWriter(capacity: 1)
        writer.append(0x12 as UInt8)
        writer.append(0x3456 as UInt16)
        writer.append(0x789A_BCDE as UInt32)
        writer.append(contentsOf: "xyz".utf8)
        #expect(writer.bytes == ("12 34 56 78 9A BC DE 78 79 7A" as Hex).bytes)
        writer.withUnsafeBytes { bytes in
            var reader = ByteReader(bytes)
            #expect(reader.readUInt8() == 0x12)
            #expect(reader.readUInt16() == 0x3456)
            #expect(reader.readUInt32() == 0x789A_BCDE)
            #expect(reader.readBytes(4) == nil)
            #expect(reader.readBytes(3).map { Array($0) } == Array("xyz".utf8))
            #expect(reader.readUInt8() == nil)
            #expect(reader.readUInt16() == nil)
            #expect(reader.readUInt32() == nil)
            #expect(reader.readBytes(-1) == nil)
            #expect(reader.remaining == 0)
        }
    }

    @Test("A copy of a writer does not see what the original writes later")
    func valueSemantics() {
        var writer = ByteWriter()
        writer.append(1 as UInt8)
        let copy = writer
        writer.append(2 as UInt8)
        #expect(copy.bytes == [1])
        #expect(writer.bytes == [1, 2])
        writer.consume(1)
        #expect(writer.bytes == [2])
        writer.truncate(to: 0)
        #expect(writer.isEmpty)
        writer.append(contentsOf: Array(repeating: 7, count: 1_000))
        writer.consume(2_000)
        #expect(writer.isEmpty)
    }
}

@Suite("Receive buffer") struct ReceiveBufferTests {
    @Test("Slices keep their bytes whatever the buffer does next")
    func liveSlices() {
        var buffer = ReceiveBuffer(capacity: 16)
        var slices: [(ByteSlice, [UInt8])] = []
        var generator = SeededGenerator(seed: 11)
        var next: UInt8 = 0
        for _ in 0..<2_000 {
            let bytes = (0..<Int.random(in: 1...40, using: &generator)).map { _ in
                next &+= 1
                return next
            }
            buffer.append(bytes)
            let count = Int.random(in: 0...buffer.count, using: &generator)
            let slice = buffer.slice(at: 0, count: count)
            slices.append((slice, slice.bytes))
            buffer.consume(count)
            if slices.count > 20 { slices.removeFirst(Int.random(in: 1...20, using: &generator)) }
            #expect(slices.allSatisfy { $0.0.bytes == $0.1 })
        }
    }

    @Test("Nothing is lost over thousands of pieces")
    func stream() {
        var buffer = ReceiveBuffer(capacity: 16)
        var generator = SeededGenerator(seed: 12)
        var written = 0
        var read = 0
        while read < 100_000 {
            let count = Int.random(in: 0...100, using: &generator)
            buffer.append((written..<written + count).map { UInt8(truncatingIfNeeded: $0) })
            written += count
            let taken = Int.random(in: 0...buffer.count, using: &generator)
            for byte in buffer.slice(at: 0, count: taken).bytes {
                #expect(byte == UInt8(truncatingIfNeeded: read))
                read += 1
            }
            buffer.consume(taken)
        }
    }

    @Test("Slices are clamped to what is there")
    func clamped() {
        var buffer = ReceiveBuffer(capacity: 16)
        buffer.append([1, 2, 3])
        #expect(buffer.slice(at: 1, count: 99).bytes == [2, 3])
        #expect(buffer.slice(at: -5, count: 2).bytes == [1, 2])
        #expect(buffer.slice(at: 9, count: 2).bytes.isEmpty)
        buffer.reserve(total: 1_000)
        #expect(buffer.slice(at: 0, count: 3).bytes == [1, 2, 3])
        buffer.consume(99)
        #expect(buffer.count == 0)
    }
}

@Suite("Time") struct WireInstantTests {
    @Test("Adding saturates instead of overflowing")
    func saturation() {
        let late = WireInstant(nanoseconds: .max - 1)
        #expect(late.advanced(by: .seconds(1)) == WireInstant(nanoseconds: .max))
        #expect(WireInstant.zero.advanced(by: .seconds(Int64.max)).nanoseconds == .max)
        #expect(Duration.seconds(Int64.min).wireNanoseconds == .min)
        #expect(Duration.milliseconds(-1).wireNanoseconds == -1_000_000)
        let start = WireInstant(nanoseconds: 5)
        #expect(start.duration(to: start.advanced(by: .seconds(60))) == .seconds(60))
    }
}
