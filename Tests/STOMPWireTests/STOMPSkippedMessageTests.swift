import STOMPWire
import Testing
import WireCore
import WireTestSupport

@Suite("STOMP client: messages above its limit") struct STOMPSkippedMessageTests {
    private static let long = String(repeating: "x", count: 300)

    private func harness(_ mode: STOMPAckMode) throws -> ClientHarness {
        var harness = try ClientHarness(.v1_2) { $0.limits.maximumBodyByteCount = 64 }
        try harness.subscribe("s", mode)
        return harness
    }

    private func message(_ number: Int, _ body: String, counted: Bool) -> String {
        let length = counted ? "content-length:\(body.utf8.count)\n" : ""
        return "MESSAGE\nsubscription:s\nmessage-id:\(number)\nack:\(number)\ndestination:/q\n"
            + "\(length)\n\(body)\0\n"
    }

    @Test(
        "With its length and without, what follows arrives, however it is cut",
        arguments: [true, false]
    )
    func skipped(counted: Bool) throws {
        let bytes = Array(
            (message(1, "1", counted: counted) + message(2, Self.long, counted: counted)
                + message(3, "3", counted: counted)).utf8
        )
        for size in [1, 7, 100, bytes.count] {
            var harness = try harness(.clientIndividual)
            for start in stride(from: 0, to: bytes.count, by: size) {
                harness.receive(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(harness.told() == ["message s 1", "skipped 300", "message s 3"])
            #expect(harness.sent == "ACK\nid:2\n\n\0")
            #expect(harness.tokens.count == 2)
        }
    }

    @Test(
        "No ACK where none is due, or where it would be about earlier messages",
        arguments: [STOMPAckMode.auto, .client]
    )
    func modes(mode: STOMPAckMode) throws {
        var harness = try harness(mode)
        harness.receive(message(1, "1", counted: true) + message(2, Self.long, counted: true))
        #expect(harness.told() == ["message s 1", "skipped 300"])
        #expect(harness.sent == "")
    }

    @Test("A body that does not end with a NUL, and another frame above the limit, are refused")
    func refused() throws {
        var harness = try harness(.auto)
        harness.receive(message(1, Self.long, counted: true).replacing("\0", with: "x"))
        #expect(harness.closure == .violation(.frameEndMissing))
        var other = try self.harness(.auto)
        other.receive("ERROR\ncontent-length:65\n\n")
        #expect(other.closure == .violation(.bodyTooLarge(maximum: 64)))
        var early = try ClientHarness(nil) { $0.limits.maximumBodyByteCount = 64 }
        try early.client.connect(STOMPConnect(host: "h"), at: .zero)
        early.receive(message(1, Self.long, counted: true))
        #expect(early.closure == .violation(.frameBeforeConnected(.message)))
    }
}
