import Testing
import WaybillRecording
import WireCore

/// The ring of the newest records.
@Suite("Recording buffer", .timeLimit(.minutes(30))) struct BufferTests {
    private static func numbers(_ snapshot: RecordingBuffer.Snapshot) -> [UInt64] {
        snapshot.records.map(\.number)
    }

    @Test(
        "The oldest records make room, by number and by size, and a reader is told what it missed"
    )
    func bounds() {
        let buffer = RecordingBuffer(maximumCount: 100)
        let recorder = Recorder(buffer: buffer)
        #expect(Self.numbers(buffer.snapshot()) == [] && buffer.snapshot().lastSerial == 0)
        for _ in 0..<250 { recorder.log(.frame("PUBLISH", "t")) }
        let snapshot = buffer.snapshot()
        #expect(Self.numbers(snapshot) == Array(151...250) && snapshot.missedCount == 150)
        #expect(snapshot.lastSerial == 250 && !snapshot.hasMore)
        #expect(Self.numbers(buffer.snapshot(after: 248)) == [249, 250])
        #expect(buffer.snapshot(after: 250).records.isEmpty)
        // Nothing beyond the last one, whatever a caller asks for.
        #expect(buffer.snapshot(after: .max).lastSerial == .max)
        let some = buffer.snapshot(after: 200, limit: 10)
        #expect(Self.numbers(some) == Array(201...210) && some.lastSerial == 210 && some.hasMore)
        #expect(buffer.snapshot(after: 0, limit: 0).lastSerial == 150)

        let small = RecordingBuffer(maximumByteCount: 10_000)
        let other = Recorder(buffer: small)
        for _ in 0..<1_000 { other.log(.frame("PUBLISH", String(repeating: "t", count: 700))) }
        #expect(small.byteCount <= 10_000 && small.byteCount > 8_000)
        #expect(
            small.snapshot().lastSerial == 1_000 && small.snapshot().records.last?.number == 1_000
        )
        // A record that is longer than all room is not kept, and takes its number.
        other.log(.frame("PUBLISH", String(repeating: "t", count: 20_000)))
        #expect(small.count == 0 && small.byteCount == 0)
        other.log(.frame("PINGREQ"))
        #expect(small.snapshot(after: 1_000).records.map(\.number) == [1_002])
        #expect(small.snapshot(after: 1_000).missedCount == 1)
    }

    @Test("Records are removed, and the numbers go on")
    func clearing() {
        let buffer = RecordingBuffer(maximumCount: 10)
        let recorder = Recorder(buffer: buffer)
        for _ in 0..<25 { recorder.log(.frame("PINGREQ")) }
        buffer.removeAll()
        #expect(buffer.count == 0 && buffer.byteCount == 0)
        recorder.log(.frame("PINGRESP"))
        #expect(buffer.snapshot(after: 25).lastSerial == 26)
        #expect(buffer.snapshot(after: 25).records.map(\.name) == ["PINGRESP"])
    }

    @Test("A slow reader gets the newest number once, and the end when the buffer is gone")
    func arrivals() async {
        var buffer: RecordingBuffer? = RecordingBuffer()
        var recorder: Recorder? = buffer.map { Recorder(buffer: $0) }
        recorder?.log(.frame("PINGREQ"))
        var numbers = buffer?.arrivals().makeAsyncIterator()
        #expect(await numbers?.next() == 1)
        for _ in 0..<100 { recorder?.log(.frame("PINGREQ")) }
        #expect(await numbers?.next() == 101)
        (buffer, recorder) = (nil, nil)
        #expect(await numbers?.next() == nil)
    }

    @Test("Readers of a buffer that many threads write see each record once, in order")
    func concurrent() async {
        let buffer = RecordingBuffer()
        let recorder = Recorder(buffer: buffer)
        await withTaskGroup { group in
            for writer in 0..<4 {
                group.addTask {
                    for _ in 0..<2_000 { recorder.log(.frame("PUBLISH", "\(writer)")) }
                }
            }
            group.addTask {
                var (serial, seen) = (UInt64(0), [UInt64]())
                for await _ in buffer.arrivals() {
                    repeat {
                        let snapshot = buffer.snapshot(after: serial, limit: 100)
                        seen += Self.numbers(snapshot)
                        serial = snapshot.lastSerial
                        if !snapshot.hasMore { break }
                    } while true
                    if serial == 8_000 { break }
                }
                #expect(seen == Array(1...8_000))
            }
        }
    }
}
