import MQTTWire
import Testing
import WireCore
import WireTestSupport

/// A PUBLISH without properties is decoded on a path of its own, unless packets are traced. Both paths mean the same.
@Suite("MQTT: the straight path of a plain PUBLISH") struct StraightPathTests {
    private static let publishKind: UInt8 = 0x30

    /// What a connected client makes of bytes.
    private func outcome(_ bytes: [UInt8], _ version: MQTTVersion, isTraced: Bool) throws
        -> [String]
    {
        var harness = try ClientHarness(version) { $0.isTracing = isTraced }
        harness.receive(bytes + bytes)
        let sent = harness.sent.map { "\($0)" }
        let receipts = harness.receipts.map { "\($0)" }
        return harness.told().filter { !$0.hasPrefix("trace") } + harness.topics + receipts + sent
    }

    @Test("Every refusal, and every golden PUBLISH, twice in a row")
    func same() throws {
        let refused = RefusalTests.rows.filter { $0.role == .client }
            .map { ($0.hex.bytes, $0.version) }
        let golden = GoldenPackets.rows.filter { $0.role == .client }.map { ($0.bytes, $0.version) }
        let rows = (refused + golden).filter { ($0.0.first ?? 0) & 0xF0 == Self.publishKind }
        #expect(rows.count > 25)
        for (bytes, version) in rows {
            let straight = try outcome(bytes, version, isTraced: false)
            #expect(straight == (try outcome(bytes, version, isTraced: true)), "\(Hex.text(bytes))")
            #expect(!straight.isEmpty || bytes.count < 3, "\(Hex.text(bytes))")
        }
    }

    @Test("Mutated messages, whole and cut")
    func mutated() async throws {
        let seeds = GoldenPackets.rows
            .filter { $0.role == .client && ($0.bytes.first ?? 0) & 0xF0 == Self.publishKind }
            .map(\.bytes)
        await Mutations.run(seeds, count: Mutations.count / 10, seed: 0x30) { bytes in
            for version in [MQTTVersion.v3_1_1, .v5] {
                let straight = try? outcome(bytes, version, isTraced: false)
                let other = try? outcome(bytes, version, isTraced: true)
                #expect(straight == other, "\(Hex.text(bytes))")
            }
        }
    }
}
