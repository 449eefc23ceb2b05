import STOMPWire
import Testing
import WireCore
import WireTestSupport

@Suite("STOMP codec: mutated input") struct STOMPMutationTests {
    /// The number of inputs for each of the four seeds.
    static let count = Mutations.count / 4

    /// Limits so low that mutations exceed them.
    private static let limits = {
        var limits = STOMPLimits()
        limits.maximumLineByteCount = 128
        limits.maximumHeaderCount = 8
        limits.maximumBodyByteCount = 512
        return limits
    }()

    @Test(
        "Whatever comes, the decoder yields frames, asks for more or refuses",
        arguments: 61...64
    )
    func mutated(seed: UInt64) async {
        var generator = SeededGenerator(seed: seed)
        let rows = GoldenFrames.rows
        var frames = 0
        var refusals = 0
        for index in 0..<Self.count {
            await Mutations.giveWay(at: index)
            let row = rows[Int(generator.next() % UInt64(rows.count))]
            var bytes = row.bytes
            for _ in 0...generator.next() % 4 { mutate(&bytes, &generator) }
            var decoder = STOMPFrameDecoder(
                role: row.role,
                version: row.version,
                limits: Self.limits
            )
            var buffer = ReceiveBuffer(capacity: 64)
            // The input arrives in two pieces, so that the decoder also has to resume.
            let cut = Int(generator.next() % UInt64(bytes.count + 1))
            do {
                for piece in [bytes[..<cut], bytes[cut...]] {
                    buffer.append(piece)
                    while let frame = try decoder.next(&buffer) {
                        frames += 1
                        if frames % 16 == 0 { check(frame, decoder.version, row.role) }
                    }
                }
            } catch {
                refusals += 1
            }
        }
        // Both outcomes must be frequent. Otherwise the mutations change too much or too little.
        #expect(frames > Self.count / 20)
        #expect(refusals > Self.count / 20)
    }

    @Test("Whatever a server says, a client holds no more than its limits", arguments: 71...72)
    func clients(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let rows = GoldenFrames.rows.filter { $0.role == .client && $0.version != nil }
        var closed = 0
        for index in 0..<Self.count / 10 {
            await Mutations.giveWay(at: index)
            var harness = try ClientHarness(.v1_2) { $0.limits = Self.limits }
            try harness.subscribe("0", .client)
            try harness.send(1)
            for _ in 0..<4 {
                var bytes = rows[Int(generator.next() % UInt64(rows.count))].bytes
                if generator.next() % 2 == 0 { mutate(&bytes, &generator) }
                harness.receive(bytes)
            }
            _ = harness.sent
            if harness.client.isFinished { closed += 1 }
        }
        #expect(closed > 0)
    }

    private func mutate(_ bytes: inout [UInt8], _ generator: inout SeededGenerator) {
        guard !bytes.isEmpty else {
            return bytes.append(UInt8(truncatingIfNeeded: generator.next()))
        }
        let random = generator.next()
        let index = Int(random >> 16 % UInt64(bytes.count))
        switch random & 0x07 {
        case 0: bytes[index] = UInt8(truncatingIfNeeded: random >> 8)
        case 1: bytes[index] ^= 1 << UInt8(random >> 8 & 7)
        case 2: bytes.remove(at: index)
        case 3: bytes.insert(Array("\n\r:\\\0c9C".utf8)[Int(random >> 8 & 7)], at: index)
        case 4: bytes.removeLast(min(bytes.count, Int(random >> 8 & 3)))
        case 5: bytes += bytes.prefix(Int(random >> 8 & 15))
        case 6: bytes[index] = 0xFF
        default: bytes[index] = 0
        }
    }

    /// Checks that a decoded frame can be encoded and decodes to the same frame, unless the raw head cannot carry it.
    private func check(_ frame: STOMPFrame, _ version: STOMPVersion?, _ role: STOMPRole) {
        let plain = PlainFrame(frame)
        let fields = plain.headers.fields.filter { $0.name != "content-length" }
        var writer = ByteWriter()
        do {
            try STOMPFrameEncoder.encode(
                frame.command,
                STOMPHeaders(fields),
                body: frame.body,
                version: version,
                into: &writer
            )
        } catch STOMPEncodingError.lineBreakNotAllowed {
            // Before 1.2 a CR is data when it is received, and is never sent.
            return
        } catch {
            Issue.record("\(error) for \(plain)")
            return
        }
        #expect(writer.withUnsafeBytes { STOMPFrameEnd.unitLength($0) } == writer.count)
        var buffer = ReceiveBuffer(capacity: 64)
        buffer.append(writer.bytes)
        // A decoder of 1.0 removes the padding of values, so it does so once more here.
        let padded = version == .v1_0 && fields.contains { $0.value.hasPrefix(" ") }
        let isOpening = frame.command.isHandshake
        var decoder = STOMPFrameDecoder(role: role, version: isOpening ? nil : version)
        guard let again = try? decoder.next(&buffer) else {
            Issue.record("cannot be decoded again: \(plain)")
            return
        }
        guard !padded else { return }
        #expect(again.headers.list.fields.filter { $0.name != "content-length" } == fields)
        #expect(again.body == frame.body)
    }
}
